"""Rollups as values: buckets that hold what they say, periods that cover, figures that add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median as exact_median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.rollups.buckets import bounds, bucket_of, median, percentile
from helmdash.core.rollups.facts import CallFacts
from helmdash.core.rollups.figures import (
    Counts,
    Distribution,
    Marginal,
    Place,
    add,
    distribution,
    tally,
)
from helmdash.core.rollups.periods import (
    Span,
    Width,
    bars,
    cover,
    first_quarter,
    moment_of,
    period_of,
    quarter_of,
)

_SIZES = st.integers(0, 2**53) | st.integers(0, 600)
_CALLS = st.builds(
    CallFacts,
    quarter=st.integers(1_900_000, 1_900_002),
    model=st.sampled_from(["GPT-4o", "gpt-4o"]),
    model_key=st.sampled_from(["openai/gpt-4o", None]),
    provider=st.sampled_from(["", "openai"]),
    client_name=st.sampled_from([None, "codex"]),
    purpose=st.sampled_from(["chat", "route", "summarise"]),
    prompt_variant=st.sampled_from(["", "full_steps"]),
    level=st.sampled_from(["ok", "unknown"]),
    level_reason=st.sampled_from(["", "suspected_cut"]),
    cause=st.sampled_from(["", "undecodable"]),
    finish_reason=st.sampled_from(["", "stop"]),
    status=st.sampled_from(["success", "error"]),
    **{
        name: st.none() | st.integers(0, 10**6)
        for name in CallFacts._fields[CallFacts._fields.index("sent_bytes") : -3]
    },
    upstream_model=st.sampled_from([None, "gpt-4o-2024-08-06"]),
    response_format=st.sampled_from([None, "", "json_object"]),
    trim_after_bytes=st.none() | st.integers(0, 10**6),
)


@given(_SIZES)
def test_a_bucket_holds_its_values_and_is_no_wider_than_a_hundredth(value: int) -> None:
    low, high = bounds(bucket_of(value))

    assert low <= value <= high
    assert bucket_of(low) == bucket_of(high) == bucket_of(value)
    assert bucket_of(high + 1) == bucket_of(value) + 1
    assert value < 256 or (high - low + 1) / low <= 0.01


@given(st.lists(_SIZES, min_size=1, max_size=40), st.integers(1, 100))
def test_a_percentile_is_half_a_hundredth_from_one_that_was_measured(
    values: list[int], percent: int
) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    measured = sorted(values)[-(-len(values) * percent // 100) - 1]

    found = percentile(counts, percent)

    assert found is not None
    assert abs(found - measured) <= measured * 0.005
    assert percentile({}, percent) is None
    middle = median(counts)
    assert middle is not None
    assert abs(middle - exact_median(values)) <= exact_median(values) * 0.005
    assert median({}) is None


_DAY = 96
_QUARTERS = st.integers(-40 * 366 * _DAY, 80 * 366 * _DAY)


@given(_QUARTERS, st.integers(0, 900 * _DAY))
def test_periods_cover_a_range_once_and_are_few(first: int, length: int) -> None:
    end = first + length

    spans = cover(first, end)

    stretches = []
    for span in spans:
        assert span.first is not None
        assert span.end is not None
        stretches.append(
            (first_quarter(span.width, span.first), first_quarter(span.width, span.end))
        )
    stretches.sort()
    if length:
        assert (stretches[0][0], stretches[-1][1]) == (first, end)
    assert all(before[1] == after[0] for before, after in pairwise(stretches))
    most = {Width.QUARTER: 6, Width.HOUR: 46, Width.DAY: 61, Width.MONTH: 30}
    for width, bound in most.items():
        held = [span for span in spans if span.width is width]
        assert sum((span.end or 0) - (span.first or 0) for span in held) <= bound


def test_a_range_without_bounds_is_made_of_months() -> None:
    assert cover(None, None) == (Span(Width.MONTH, None, None),)
    since = quarter_of(datetime(2026, 6, 5, 14, 41, 3, tzinfo=UTC))
    assert cover(since, None) == (
        Span(Width.QUARTER, since, since + 2),
        Span(Width.HOUR, (since + 2) // 4, (since + 2) // 4 + 9),
        Span(Width.DAY, 20_610, 20_635),
        Span(Width.MONTH, 2026 * 12 + 6, None),
    )
    last = quarter_of(datetime.max.replace(tzinfo=UTC))
    assert cover(last, None)[-1].first == 10_000 * 12


@given(_QUARTERS, st.integers(1, 200 * 366 * _DAY), st.integers(1, 120))
def test_bars_hold_their_range_and_are_few(first: int, length: int, most: int) -> None:
    end = first + length

    width, edges = bars(first, end, most=most)

    assert 1 <= len(edges) - 1 <= most
    assert edges[-2] < end <= edges[-1]
    # Only bars of years may be too many: then the newest stand.
    assert edges[0] <= first or (len(edges) - 1 == most and width is Width.MONTH)
    assert edges[1] > first
    assert sorted(set(edges)) == list(edges)
    assert all(first_quarter(width, period_of(width, edge)) == edge for edge in edges)


@pytest.mark.parametrize(
    ("hours", "since", "count"),
    [
        (0.4, "2026-06-05 14:15", 2),
        (24, "2026-06-04 14:30", 97),
        (31, "2026-06-04 07:00", 32),
        (7 * 24, "2026-05-29 12:00", 57),
        (30 * 24, "2026-05-06 12:00", 61),
        (90 * 24, "2026-03-07 00:00", 91),
        (365 * 24, "2025-06-02 00:00", 53),  # a Monday
        (5 * 365 * 24, "2021-06-01 00:00", 61),
    ],
)
def test_bars_begin_where_clocks_and_calendars_do(hours: float, since: str, count: int) -> None:
    end = datetime(2026, 6, 5, 14, 41, 3, tzinfo=UTC)

    _, edges = bars(quarter_of(end - timedelta(hours=hours)), quarter_of(end) + 1, most=120)

    assert (f"{moment_of(edges[0]):%Y-%m-%d %H:%M}", len(edges) - 1) == (since, count)


@given(st.integers(-62_135_596_800, 253_402_300_799))  # the years 1 to 9999
def test_a_moment_lies_in_its_periods(seconds: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    quarter = quarter_of(moment)

    assert 0 <= (moment - moment_of(quarter)).total_seconds() < 900
    for width in Width:
        number = period_of(width, quarter)
        assert first_quarter(width, number) <= quarter < first_quarter(width, number + 1)


def _sum(*parts: dict[Place, Counts]) -> dict[Place, Counts]:
    total: dict[Place, Counts] = {}
    for part in parts:
        for place, counts in part.items():
            add(total.setdefault(place, {}), counts)
    return {place: counts for place, counts in total.items() if counts}


@settings(max_examples=60, deadline=None)
@given(st.lists(_CALLS, max_size=6), st.lists(_CALLS, max_size=6), _CALLS)
def test_figures_add_up_in_any_order_and_go_as_they_came(
    some: list[CallFacts], others: list[CallFacts], changed: CallFacts
) -> None:
    one, two = (tally((None, each) for each in calls) for calls in (some, others))

    assert _sum(one, two) == _sum(two, one) == tally((None, each) for each in some + others)
    assert _sum(one, tally((each, None) for each in some)) == {}
    # A call that turns out to have been another.
    assert _sum(one, tally((each, changed) for each in some)) == tally(
        (None, changed) for _ in some
    )


@pytest.mark.parametrize("words", [{}, {"level_reason": "suspected_cut"}, {"prompt_tokens": 0}])
def test_a_count_that_is_not_trusted_is_in_no_share(words: dict[str, Any]) -> None:
    call = CallFacts(
        *(1_900_000, "m", "m", "", None, "chat", "", "ok", "", "", "stop", "success"),
        *(500, 1_000, 10, 400, None, None, 2_000, 90, None, 1_200),
    )._replace(**words)

    (counts,) = tally([(None, call)], only=Marginal.ALL).values()

    shares = {
        what: distribution(counts, what)
        for what in (Distribution.FULLNESS, Distribution.ESTIMATE_RATIO)
    }
    trusted = {
        Distribution.FULLNESS: {bucket_of(500_000): 1},
        Distribution.ESTIMATE_RATIO: {bucket_of(1_200_000): 1},
    }
    assert shares == ({what: {} for what in trusted} if words else trusted)
    assert counts.get("hit") == (None if words else 400)
    assert distribution(counts, Distribution.LATENCY_MS) == {90: 1}
