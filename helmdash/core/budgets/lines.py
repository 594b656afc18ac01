"""Lines: the tokens above which a context is caution or critical, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# The soft line where a row sets none: beyond it, models lose track of what they were told.
DEFAULT_OPTIMAL_MAX_TOKENS = 100_000
# Below this limit the flat soft line lies so near the critical one, or above it, that nothing would
# be yellow and nobody told before a clear; there the line is a share of the limit.
_SHARE_BELOW_TOKENS = 128_000
_OPTIMAL_PERCENT = 70
_CRITICAL_PERCENT = 90


class LineSource(StrEnum):
    """Where the caution or the critical line comes from."""

    BUDGET = "budget"  # the row sets it
    FLAT = "default"  # 100,000 tokens
    SHARE_OF_LIMIT = "share_of_limit"  # 70 % (caution) or 90 % (critical) of the limit
    SHARE_OF_CRITICAL = "share_of_critical"  # below a critical line that is lower than usual
    UNKNOWN = "unknown"  # no limit is known, so there is no critical line


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines between healthy, caution and critical (tokens), each with where it comes from.

    Critical is None where the limit is unknown and the row sets no line.
    """

    optimal_max_tokens: int
    optimal_source: LineSource
    critical_max_tokens: int | None
    critical_source: LineSource


def lines_of(optimal: int | None, critical: int | None, *, limit: int | None) -> Lines:
    """Give both lines of a row; None stands for the default.

    Critical: 90 % of the limit. Caution: 100,000 tokens, but 70 % of a limit below 128,000, and
    never above what it would be if critical were 90 % of the limit. All rounded down.
    """
    critical_source = LineSource.BUDGET
    if critical is None:
        critical = None if limit is None else share_of(limit, _CRITICAL_PERCENT)
        critical_source = LineSource.UNKNOWN if limit is None else LineSource.SHARE_OF_LIMIT
    optimal_source = LineSource.BUDGET
    if optimal is None:
        optimal, optimal_source = _default_optimal(critical, limit)
    return Lines(
        optimal_max_tokens=optimal,
        optimal_source=optimal_source,
        critical_max_tokens=critical,
        critical_source=critical_source,
    )


def lines_that_fit(optimal: int | None, critical: int | None, *, limit: int) -> Lines:
    """As `lines_of`, in a limit that others told: a line that was drawn for a longer window is the
    default one."""
    critical = critical if critical is not None and critical <= limit else None
    lines = lines_of(optimal, critical, limit=limit)
    if lines.critical_max_tokens is None or lines.optimal_max_tokens < lines.critical_max_tokens:
        return lines
    return lines_of(None, critical, limit=limit)


def share_of(limit: int, percent: int) -> int:
    """A share of a limit, rounded down, and at least one token."""
    return max(1, limit * percent // 100)


def _default_optimal(critical: int | None, limit: int | None) -> tuple[int, LineSource]:
    optimal, source = DEFAULT_OPTIMAL_MAX_TOKENS, LineSource.FLAT
    if limit is not None and limit < _SHARE_BELOW_TOKENS:
        optimal, source = share_of(limit, _OPTIMAL_PERCENT), LineSource.SHARE_OF_LIMIT
    if critical is not None and critical <= optimal:
        # A row may set its critical line alone, and low: there must be a yellow below it.
        lower = max(1, critical * _OPTIMAL_PERCENT // _CRITICAL_PERCENT)
        if lower < optimal:
            return lower, LineSource.SHARE_OF_CRITICAL
    return optimal, source
