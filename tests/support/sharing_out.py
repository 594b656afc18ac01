"""Which tests follow each other in one worker, and which are given out first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pytest

# Of one file, so that a worker sets up what they share once; few, so that the last ones of a run
# end together.
_FEW = 8


def batches(items: Sequence[pytest.Item]) -> list[list[int]]:
    """The places of all tests, in batches that one worker runs in order, to be given out in order.

    Tests of a group (the mark `xdist_group`) are one batch. The longest come first, so that the
    end of a run does not wait for one worker.
    """
    groups: dict[str, list[int]] = {}
    alone: list[list[int]] = []
    others: list[int] = []
    for place, item in enumerate(items):
        if (group := group_of(item)) is not None:
            groups.setdefault(group, []).append(place)
        elif item.get_closest_marker("slow"):
            alone.append([place])
        else:
            others.append(place)
    long_ones = sorted(groups.values(), key=len, reverse=True)
    return [*long_ones, *alone, *_by_file(items, others)]


def group_of(item: pytest.Item) -> str | None:
    """The group that a test is marked with: its tests follow each other in one worker."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark is not None else None


def _by_file(items: Sequence[pytest.Item], places: list[int]) -> Iterator[list[int]]:
    for _, of_file in groupby(places, key=lambda place: items[place].path):
        found = list(of_file)
        yield from (found[n : n + _FEW] for n in range(0, len(found), _FEW))
