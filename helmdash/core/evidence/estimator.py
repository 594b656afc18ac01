"""Bytes per token and the margin above, by sizes that were sent and tokens that were reported.

A pack may report the size of less than its prompt (the newest message, or all but the tools), and
images weigh otherwise than text. Such sizes teach nothing: not less than a byte a token, nor what a
budget cannot hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from helmdash.core.rollups.buckets import percentile
from helmdash.core.rollups.evidence_facts import RATIO_UNIT

ESTIMATOR_VERSION: Final = "estimator-2"

LEAST_CALLS: Final = 50
# Of a hundred prompts so many are to be estimated at least as long as they are.
_COVERED_PERCENT: Final = 95
# Bytes a token: no tokenizer makes more tokens than there are bytes, and a budget holds no more.
# Its buckets are 1 % wide, so that 1 may read as 0.995.
_LEAST_RATIO, _MOST_RATIO = 0.99, 100.0
# What a budget may hold (core.budgets.budgets).
_LEAST_MARGIN, _MOST_MARGIN = 1.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """What sizes and counts show. bytes_per_token and margin: None where too few calls are known,
    or their sizes cannot be those of the prompts.

    error: of an estimate without margin, the median of how far it is off, as a share. today_error:
    the same of the ratio that is used today. missing: calls that the method lacks.
    """

    calls: int
    bytes_per_token: float | None = None
    margin: float | None = None
    error: float | None = None
    today_error: float | None = None
    missing: int = 0
    method: str = ESTIMATOR_VERSION


def find_ratios(counts: Mapping[int, int], *, today: float) -> Ratios:
    """counts: calls by the bucket (core.rollups.buckets) of their ratio. today: bytes per token by
    which prompts are estimated now."""
    calls = sum(counts.values())
    middle, low = percentile(counts, 50), percentile(counts, 100 - _COVERED_PERCENT)
    if calls < LEAST_CALLS or not middle or not low:
        return Ratios(calls=calls, missing=max(LEAST_CALLS - calls, 0))
    ratio = round(middle / RATIO_UNIT, 2)
    # Upwards: a margin is what is to be enough.
    margin = max(-(-middle * 100 // low) / 100, _LEAST_MARGIN)
    if not _LEAST_RATIO <= ratio <= _MOST_RATIO or margin > _MOST_MARGIN:
        return Ratios(calls=calls)
    return Ratios(
        calls=calls,
        bytes_per_token=ratio,
        margin=margin,
        error=_median_error(counts, ratio),
        today_error=_median_error(counts, today),
    )


def _median_error(counts: Mapping[int, int], ratio: float) -> float | None:
    """Of estimates by this ratio: the median of |estimate / count - 1|, in thousandths' steps."""
    errors: dict[int, int] = {}
    for bucket, calls in counts.items():
        true = percentile({bucket: 1}, 50) or 1
        off = round(abs(true / (ratio * RATIO_UNIT) - 1) * 1_000)
        errors[off] = errors.get(off, 0) + calls
    left = sum(errors.values()) / 2
    for off in sorted(errors):
        left -= errors[off]
        if left <= 0:
            return off / 1_000
    return None
