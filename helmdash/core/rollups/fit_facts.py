"""What is counted of a fit: for whom, how much it cut, and by which steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

# Words of figures. Behind the last three stands the label of a step (core.catalog.compaction).
FITS: Final = "n"
TRIMMED: Final = "cut"
OVER: Final = "over"
BEFORE_BYTES: Final = "bb"
AFTER_BYTES: Final = "ab"
STEP_FITS: Final = "sf"
STEP_ENTRIES: Final = "se"
STEP_BYTES: Final = "sb"


class FitFacts(NamedTuple):
    """A fit's columns; `quarter` is the quarter-hour it was made in, a step is (label, entries it
    went over, bytes it saved)."""

    quarter: int
    model: str
    caller: str
    before_bytes: int
    after_bytes: int
    fits: bool
    steps: Sequence[tuple[str, int, int]]


def figures_of(facts: FitFacts) -> dict[str, int]:
    """The counts of one fit; as many of them as its Trim has steps, and some more."""
    counts = {
        FITS: 1,
        TRIMMED: int(facts.after_bytes != facts.before_bytes),
        OVER: int(not facts.fits),
        BEFORE_BYTES: facts.before_bytes,
        AFTER_BYTES: facts.after_bytes,
    }
    for label, entries, saved in facts.steps:
        for word, amount in ((STEP_FITS, 1), (STEP_ENTRIES, entries), (STEP_BYTES, saved)):
            name = f"{word}:{label}"
            counts[name] = counts.get(name, 0) + amount
    return {word: count for word, count in counts.items() if count}
