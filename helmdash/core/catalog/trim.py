"""Trim: the typed receipt of fitting a catalog.

It says what was dropped, in which step, how many bytes that saved, which entries stay and which
went, and whether the result fits. The flat list of labels of helmdeck ADR 050 is derived from it
(`dropped`), never parsed back. Pure values; made by `selection`, stored and shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from helmdash.answers import HIDDEN, Doc, Words, answer, member
from helmdash.core.catalog.catalog import EntryKind

# The labels of helmdeck ADR 050 for a ranking in doubt, and for the picks of a filter pass.
LOW_CONFIDENCE: Final = "lexical.low_confidence"
LLM_FILTER: Final = "llm_filter(picks={picks},kept={kept})"


# A kind of entry where it is kept as plain text.
KindText = Annotated[str, Words(tuple(EntryKind))]


@answer("CompactionStep")
@dataclass(frozen=True, slots=True)
class TrimStep:
    """What one step changed and saved."""

    label: str
    entries: int
    bytes_saved: int


@answer("CompactionEntry")
@dataclass(frozen=True, slots=True)
class TrimEntry:
    """An entry by its rank for the intent.

    rank: from 1, the best.
    """

    id: str
    kind: Annotated[EntryKind, Words(tuple(EntryKind))]
    rank: int
    score: float
    history: Annotated[float, Doc("What past plans add to the score.")] = 0.0


@answer("Compaction")
@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """The receipt of fitting (the Trim).

    Bytes are UTF-8 bytes of compact JSON; `limit_bytes` None means no limit.

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
    flags: Annotated[tuple[str, ...], HIDDEN] = ()

    @property
    @member
    def dropped(self) -> tuple[str, ...]:
        """The labels of helmdeck ADR 050, in order: steps, flags, and what it is over, if so."""
        labels = (*(step.label for step in self.steps), *self.flags)
        if self.fits:
            return labels
        return (*labels, f"still_over_budget({self.after_bytes}>{self.limit_bytes})")
