"""Fixed buckets for whole numbers of any size, so that distributions can be added up.

Below 256 a number has a bucket of its own; above, each power of two is cut into 128 equal ones, so
that no bucket is wider than 1/128 (0.8 %) of what it holds. Only shifts of whole numbers: the same
number lies in the same bucket on every machine, now and in ten years.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

_PARTS_BITS: Final = 7
_PARTS: Final = 1 << _PARTS_BITS


def bucket_of(value: int) -> int:
    """The number of the bucket that holds the value (0 or more); larger values, larger numbers."""
    shift = value.bit_length() - _PARTS_BITS - 1
    return value if shift <= 0 else (shift << _PARTS_BITS) + (value >> shift)


def bounds(bucket: int) -> tuple[int, int]:
    """The least and the largest value that a bucket holds."""
    shift = (bucket >> _PARTS_BITS) - 1
    if shift <= 0:
        return bucket, bucket
    low = (bucket - (shift << _PARTS_BITS)) << shift
    return low, low + (1 << shift) - 1


def percentile(counts: Mapping[int, int], percent: int) -> int | None:
    """The nearest-rank percentile of what was counted by bucket; None where nothing was.

    The middle of its bucket: at most 0.4 % from a value that was measured, below 256 that value.
    """
    return percentiles(counts, (percent,))[0]


def percentiles(counts: Mapping[int, int], percents: Sequence[int]) -> tuple[int | None, ...]:
    """As `percentile`, of several: the buckets are put in order once."""
    total = sum(counts.values())
    if total <= 0:
        return (None,) * len(percents)
    return _at_ranks(counts, [-(-total * percent // 100) for percent in percents])


def median(counts: Mapping[int, int]) -> float | None:
    """The median of what was counted by bucket, between two values where they are even in number;
    None where nothing was. As near as a percentile is."""
    total = sum(counts.values())
    if total <= 0:
        return None
    return sum(_at_ranks(counts, [(total + 1) // 2, total // 2 + 1])) / 2


def _at_ranks(counts: Mapping[int, int], ranks: Sequence[int]) -> tuple[int, ...]:
    """The middles of the buckets that hold the values of these ranks, of 1 and more."""
    ordered = sorted(counts)
    up_to = list(accumulate(map(counts.__getitem__, ordered)))
    return tuple(sum(bounds(ordered[bisect_left(up_to, rank)])) // 2 for rank in ranks)
