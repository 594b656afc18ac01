"""Trim: the typed receipt of fitting a catalog.

It says what was dropped, in which step, how many bytes that saved, which entries stay and which
went, and whether the result fits. The flat list of labels of helmdeck ADR 050 is derived from it
(`dropped`), never parsed back. Pure values; made by `selection`, stored and shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict

from helmdash.core.catalog.catalog import EntryKind

# The labels of helmdeck ADR 050 for a ranking in doubt, and for the picks of a filter pass.
LOW_CONFIDENCE: Final = "lexical.low_confidence"
LLM_FILTER: Final = "llm_filter(picks={picks},kept={kept})"


class TrimStepJson(TypedDict):
    """A step as the API shows it."""

    label: str
    entries: int
    bytes_saved: int


class TrimEntryJson(TypedDict):
    """An entry's fate as the API shows it."""

    id: str
    kind: str
    rank: int
    score: float
    history: float


class TrimJson(TypedDict):
    """The `compaction` object of the API. Bytes of compact JSON; `limit_bytes` null: no limit."""

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    dropped: list[str]
    steps: list[TrimStepJson]
    kept: list[TrimEntryJson]
    removed: list[TrimEntryJson]
    versions: dict[str, str]
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class TrimStep:
    """What one step really did: the entries it changed and the bytes it saved."""

    label: str
    entries: int
    bytes_saved: int


@dataclass(frozen=True, slots=True)
class TrimEntry:
    """One entry's place in the ranking: `rank` counts from 1, the best.

    `history` is the part of the score that past plans gave.
    """

    id: str
    kind: EntryKind
    rank: int
    score: float
    history: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """The receipt. Bytes are UTF-8 bytes of compact JSON; `limit_bytes` None means no limit.

    `kept` and `removed` are in rank order and together name every entry of the catalog.
    The `bytes_saved` of all steps add up to `before_bytes - after_bytes`. `flags` are labels
    of `dropped` that saved no bytes: how far the ranking was trusted.
    """

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    steps: tuple[TrimStep, ...] = ()
    kept: tuple[TrimEntry, ...] = ()
    removed: tuple[TrimEntry, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def dropped(self) -> tuple[str, ...]:
        """The labels of helmdeck ADR 050, in order: steps, flags, and what it is over, if so."""
        labels = (*(step.label for step in self.steps), *self.flags)
        if self.fits:
            return labels
        return (*labels, f"still_over_budget({self.after_bytes}>{self.limit_bytes})")

    @property
    def share_removed(self) -> float:
        """The share of the bytes that went, 0.0 to 1.0."""
        if self.before_bytes <= 0:
            return 0.0
        return (self.before_bytes - self.after_bytes) / self.before_bytes

    def to_json(self) -> TrimJson:
        """Gives the `compaction` object of the API, which `POST /calls` takes as `trim` again."""
        return {
            "before_bytes": self.before_bytes,
            "after_bytes": self.after_bytes,
            "fits": self.fits,
            "limit_bytes": self.limit_bytes,
            "dropped": list(self.dropped),
            "steps": [
                {"label": s.label, "entries": s.entries, "bytes_saved": s.bytes_saved}
                for s in self.steps
            ],
            "kept": [_entry_json(entry) for entry in self.kept],
            "removed": [_entry_json(entry) for entry in self.removed],
            "versions": dict(self.versions),
            "timings_ms": dict(self.timings_ms),
        }


def _entry_json(entry: TrimEntry) -> TrimEntryJson:
    return {
        "id": entry.id,
        "kind": entry.kind.value,
        "rank": entry.rank,
        "score": entry.score,
        "history": entry.history,
    }
