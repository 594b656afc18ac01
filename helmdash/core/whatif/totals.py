"""What a what-if counts: whole numbers by the name of the figure, and sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from helmdash.core.whatif.calls import NOW, WAS, Pair
from helmdash.core.whatif.fits import NotReplayable, ReplayedFit

# Models that have counts of their own; the calls of others are counted together.
MOST_MODELS: Final = 100
OTHER_MODELS: Final = "_OTHER"
MICRO: Final = 1_000_000


@dataclass(slots=True)
class Totals:
    """counts: by figure. sums: micro-USD, bytes and entries by figure. models: counts by model
    key."""

    counts: dict[str, int] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    models: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return {"counts": self.counts, "sums": self.sums, "models": self.models}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Totals:
        """What `to_json` gave; none of anything where nothing was stored."""
        told = stored or {}
        return cls(
            counts=dict(told.get("counts", {})),
            sums=dict(told.get("sums", {})),
            models={key: dict(value) for key, value in told.get("models", {}).items()},
        )

    def add_call(self, pair: Pair) -> None:
        """Count a call."""
        figures = list(pair.figures())
        self.add(figures)
        model = pair.model
        if model not in self.models and len(self.models) >= MOST_MODELS:
            model = OTHER_MODELS
        own = self.models.setdefault(model, {})
        for each in figures:
            own[each] = own.get(each, 0) + 1
        if pair.was.cost_usd is not None and pair.now.cost_usd is not None:
            self._sum(f"cost:{WAS}", pair.was.cost_usd * MICRO)
            self._sum(f"cost:{NOW}", pair.now.cost_usd * MICRO)

    def add_fit(self, found: ReplayedFit | NotReplayable) -> None:
        """Count a fit."""
        self.add(fit_figures(found))
        if isinstance(found, NotReplayable):
            return
        for name, trim in ((WAS, found.before), (NOW, found.after)):
            self._sum(f"bytes:{name}", trim.after_bytes)
            self._sum(f"entries:{name}", len(trim.kept))

    def add(self, figures: Iterable[str]) -> None:
        """Count one more of each."""
        for each in figures:
            self.counts[each] = self.counts.get(each, 0) + 1

    def _sum(self, name: str, value: float) -> None:
        self.sums[name] = self.sums.get(name, 0) + value


def fit_figures(found: ReplayedFit | NotReplayable) -> list[str]:
    """The names of the figures that count a fit."""
    if isinstance(found, NotReplayable):
        return ["fits", f"not:{found.value}"]
    figures = ["fits", "replayed", "as_recorded" if found.is_as_recorded else "otherwise"]
    for name, trim in ((WAS, found.before), (NOW, found.after)):
        if trim.after_bytes < trim.before_bytes:
            figures.append(f"trimmed:{name}")
        if trim.removed:
            figures.append(f"dropped:{name}")
        if not trim.fits:
            figures.append(f"too_big:{name}")
    if found.before != found.after:
        figures.append("changed")
    return figures
