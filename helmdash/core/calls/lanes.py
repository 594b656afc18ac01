"""Lanes: whether a call carries a conversation on, or is made beside it.

A main call measures how full its conversation is. A side call (a title, a classifier, a compaction,
a memory) belongs to the conversation and is shown with it, but has no generation and no round,
never measures, and never advances care: its prompt is another one, and would turn the light green
or red for nothing.
"""

from __future__ import annotations

from enum import StrEnum


class Lane(StrEnum):
    """Where a call stands beside the others of its conversation."""

    MAIN = "main"
    SIDE = "side"


# What clients do beside a conversation, by the purpose that they tell: it is never a turn of it.
SIDE_PURPOSES = frozenset({"title", "compaction", "memory", "classify"})


def lane_of(told: Lane | None, purpose: str) -> Lane:
    """The lane of a call: as it was told, else by its purpose where that leaves no doubt."""
    if told is not None:
        return told
    return Lane.SIDE if purpose in SIDE_PURPOSES else Lane.MAIN
