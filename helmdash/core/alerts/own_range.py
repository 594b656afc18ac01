"""Whether a model's calls of now are out of its own range: that of its week before.

Nobody writes a number down that a new model makes wrong. Wilson's interval keeps a handful of calls
from saying anything: what is compared is how bad it is at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from helmdash.core.text.wilson import wilson

# Below this, an interval is wider than any range.
LEAST_CALLS: Final = 20
# The range is known by as many calls as tell a share of 5 % within 4 points.
LEAST_BEFORE: Final = 200
# A rate may double, or rise by five points, before it is another one.
_TIMES: Final = 2.0
_POINTS: Final = 0.05
# Of the calls before, 5 in 100 were slower than their 95th percentile; four times as many are not
# the same any more.
SLOW_PERCENT: Final = 95
_SLOW_SHARE: Final = 0.20


def is_rate_out(failed: int, calls: int, *, failed_before: int, calls_before: int) -> bool | None:
    """Whether clearly more calls fail than before; None: too few to tell."""
    if calls < LEAST_CALLS or calls_before < LEAST_BEFORE:
        return None
    usual = failed_before / calls_before
    now = wilson(failed, calls)
    return now is not None and now[0] > max(_TIMES * usual, usual + _POINTS)


def is_latency_out(slow: int, calls: int, *, calls_before: int) -> bool | None:
    """Whether clearly more calls are slow than before; None: too few to tell.

    slow: those above the 95th percentile of the calls before.
    """
    if calls < LEAST_CALLS or calls_before < LEAST_BEFORE:
        return None
    now = wilson(slow, calls)
    return now is not None and now[0] > _SLOW_SHARE


def usual_bucket(counts: Mapping[int, int]) -> int:
    """The bucket that holds the percentile: what lies above is slower. 0 without calls."""
    left = -(-sum(counts.values()) * SLOW_PERCENT // 100)
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return bucket
    return 0
