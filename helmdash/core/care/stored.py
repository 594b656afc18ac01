"""Reading what care has stored as JSON: whatever cannot be used is as good as not there."""

from __future__ import annotations


def whole_of(value: object, *, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """A whole number from `least` up, cut to `most` (a database's largest integer); None for
    anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        return None
    return min(value, most)
