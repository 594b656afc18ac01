"""How calls do over a range, as a few rates and how they went: what a glance asks first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.outcomes import CallOutcome
from helmdash.core.rollups.figures import CALLS, CUTS, Counts, Marginal, add
from helmdash.core.rollups.periods import moment_of
from helmdash.queries.calls.series import Only, OverTime, over_time

# A piece of four pixels on a phone, and enough calls in each to be worth a point.
MOST_PIECES: Final = 40


class RateName(StrEnum):
    """What a rate is of. FROM_CACHE is a share of prompt tokens, the others are of calls."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    CUT = "cut"
    UNKNOWN = "unknown"
    FROM_CACHE = "from_cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateOverTime:
    """One rate. share: of the whole range, of `n` calls, `count` of them (None: of tokens); None
    where no call told it. shares: of its pieces of time, oldest first; None where a piece has no
    such call, or is not counted."""

    name: RateName
    share: float | None
    count: int | None
    n: int
    shares: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of a range, in an order. is_whole: all of it is counted; is_behind: but for the
    newest calls. is_wider: the first or the last piece reaches over the range, so that calls from
    outside it may be counted."""

    rates: tuple[RateOverTime, ...]
    is_whole: bool
    is_behind: bool
    is_wider: bool


def rates(
    *, project_id: int, since: datetime | None, until: datetime | None, now: datetime
) -> Rates:
    """The rates of a range, and of at most MOST_PIECES pieces of it: exact, from rollups. The first
    and the last piece reach over the range. Two queries, two more without `since`."""
    found = over_time(
        project_id=project_id,
        since=since,
        until=until,
        now=now,
        only=Only(marginal=Marginal.ALL),
        heads=None,
        most=MOST_PIECES,
    )
    pieces = [counts for _, _, counts in found.pieces]
    whole: Counts = {}
    for counts in pieces:
        add(whole, counts or {})
    return Rates(
        rates=tuple(_rate(name, whole, pieces) for name in RateName),
        is_whole=None not in pieces,
        is_behind=found.is_behind,
        is_wider=_is_wider(found, since, until),
    )


def _is_wider(found: OverTime, since: datetime | None, until: datetime | None) -> bool:
    if not found.pieces:
        return False
    begins_before = since is not None and moment_of(found.pieces[0][0]) < since
    return begins_before or (until is not None and moment_of(found.pieces[-1][1]) > until)


class _Words(NamedTuple):
    """Of figures: what is counted, what that is a share of, and the calls that told it."""

    part: str
    whole: str
    calls: str


_WORDS: Final = {
    RateName.TRUNCATED: _Words(f"o:{CallOutcome.TRUNCATED}", CALLS, CALLS),
    RateName.EMPTY: _Words(f"o:{CallOutcome.EMPTY}", CALLS, CALLS),
    RateName.CUT: _Words(CUTS, CALLS, CALLS),
    RateName.UNKNOWN: _Words(f"l:{Level.UNKNOWN}", CALLS, CALLS),
    RateName.FROM_CACHE: _Words("hit", "hit/", "hit#"),
}


def _rate(name: RateName, whole: Counts, pieces: list[Counts | None]) -> RateOverTime:
    words = _WORDS[name]
    return RateOverTime(
        name=name,
        share=_share(whole, words),
        count=whole.get(words.part, 0) if words.whole == CALLS else None,
        n=whole.get(words.calls, 0),
        shares=tuple(None if counts is None else _share(counts, words) for counts in pieces),
    )


def _share(counts: Counts, words: _Words) -> float | None:
    among = counts.get(words.whole, 0)
    return counts.get(words.part, 0) / among if among else None
