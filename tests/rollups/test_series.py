"""Bars over time: every call of the range in one, whether it is folded or waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.outcomes import outcome_of
from helmdash.core.rollups.figures import Marginal
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.rollups.rebuilding import rebuild_some
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.listing import page
from helmdash.queries.calls.series import MOST_BARS, Only, Series, Split, call_series, series
from helmdash.records.models import Call, RollupState
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

_GPT = Only(marginal=Marginal.MODEL, words=("openai/gpt-4o",))


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def _series(project: ProjectInfo, hours: float | None, **over: Any) -> Series:
    given: dict[str, Any] = {
        "project_id": project.id,
        "since": None if hours is None else NOW - timedelta(hours=hours),
        "until": None,
        "now": NOW,
        "split": Split.FINISH_REASON,
    }
    return series(**{**given, **over})


def _fill(project: ProjectInfo, *ages: float) -> None:
    for number, hours in enumerate(ages):
        record(
            project,
            make_capture(
                conversation=None,
                started_at=NOW - timedelta(hours=hours),
                model="acme/tiny" if number % 3 == 0 else "openai/gpt-4o",
                finish_reason="length" if number % 2 else "stop",
            ),
        )


@pytest.mark.parametrize("is_folded", [True, False])
def test_bars_hold_the_calls_that_started_in_them(project: ProjectInfo, is_folded: bool) -> None:
    ages = (0, 0.2, 0.6, 5, 19, 30, 99, 1_000, 20_000)
    _fill(project, *ages)
    if is_folded:
        fold_all()
    nobody = Only(marginal=Marginal.MODEL, words=())
    for hours, only in product((1, 20, 100, 2_000, None), (None, _GPT, nobody)):
        found = _series(project, hours, only=only)

        mine = [n for n in range(len(ages)) if only is None or (only.words and n % 3)]
        assert len(found.bars) <= MOST_BARS
        assert all(before.until == after.since for before, after in pairwise(found.bars))
        for bar in found.bars:
            held = [n for n in mine if bar.since <= NOW - timedelta(hours=ages[n]) < bar.until]
            reasons = Counter("length" if n % 2 else "stop" for n in held)
            assert (bar.calls, bar.parts) == (len(held), reasons)
        assert hours is not None or sum(bar.calls or 0 for bar in found.bars) == len(mine)


_SPLITS: dict[Split, Callable[[Call], str]] = {
    Split.OUTCOME: lambda call: outcome_of(cause=call.cause, status=call.status),
    Split.LEVEL: lambda call: call.level,
    Split.CAUSE: lambda call: call.cause,
    Split.FINISH_REASON: lambda call: call.finish_reason,
}


_FILTERS: list[dict[str, Any]] = [
    {},
    {"model": "GPT-4o"},
    {"client": "Codex"},
    {"finish_reason": "length"},
    {"level": "unknown", "purpose": "plan"},
    {"pack": "search"},
    {"conversation": "talk"},
    {"q": "c-1"},
    {"q": "nothing"},
    {"level_reason": "usage_unavailable", "model": "openai/gpt-4o"},
]


def test_bars_of_a_list_hold_what_it_lists(project: ProjectInfo) -> None:
    for number, hours in enumerate((0, 0.2, 3, 3.1, 20, 21, 22, 23)):
        over: dict[str, Any] = {
            "id": f"c-{number}",
            "started_at": NOW - timedelta(hours=hours),
            "conversation": "talk" if number % 3 else None,
            "model": "openai/gpt-4o" if number % 2 else "acme/tiny",
            "purpose": "plan" if number % 4 else "chat",
            "pack": "search" if number < 3 else None,
            "finish_reason": "length" if number % 3 == 1 else "stop",
            "usage": None if number % 5 else {"prompt_tokens": 120_000},
            "client_name": "codex" if number > 5 else None,
        }
        record(project, make_capture(**over))
    for given, split in product(_FILTERS, Split):
        filters = CallFilters(**given, since=NOW - timedelta(hours=22.5))

        found = call_series(project_id=project.id, filters=filters, now=NOW, split=split)

        whole = replace(filters, since=found.bars[0].since)
        listed = [call.id for call in page(project_id=project.id, filters=whole).items]
        rows = list(Call.objects.filter(project_id=project.id, name__in=listed))
        for bar in found.bars:
            held = [row for row in rows if bar.since <= row.started_at < bar.until]
            words = Counter(word for row in held if (word := _SPLITS[split](row)) != "")
            assert (bar.calls, bar.parts, bar.is_estimate) == (len(held), words, False), given


def test_where_more_fit_than_are_read_older_bars_are_estimates(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the calls are of the pack, at any time: and that is what is estimated."""
    monkeypatch.setattr("helmdash.queries.calls.series.MOST_READ", 8)
    for hours in range(20):
        for pack in ("search", None) * 2:
            at = NOW - timedelta(hours=hours)
            record(project, make_capture(conversation=None, started_at=at, pack=pack))
    filters = CallFilters(pack="search", since=NOW - timedelta(hours=19), purpose="chat")

    found = call_series(project_id=project.id, filters=filters, now=NOW, split=Split.OUTCOME)

    told = [(bar.calls, bar.is_estimate) for bar in found.bars if bar.calls]
    assert told == [(2, True)] * 16 + [(2, False)] * 4
    assert found.is_estimate
    assert found.is_whole
    # The range is one bar, and not all of it was read.
    wide = replace(filters, since=None)
    record(project, make_capture(started_at=NOW - timedelta(days=9_000), pack="search"))
    (*_, latest) = call_series(
        project_id=project.id, filters=wide, now=NOW, split=Split.OUTCOME
    ).bars
    assert (latest.calls, latest.parts, latest.is_estimate) == (40, {"clean": 40}, True)


# Years of `since` and `until`, and how many of three calls are in the bars.
@pytest.mark.parametrize(("first", "last", "calls"), [(2020, 9999, 3), (1, None, 3), (1, 2, 0)])
def test_ranges_beyond_all_calls_still_have_bars_that_hold_them(
    project: ProjectInfo, first: int, last: int | None, calls: int
) -> None:
    _fill(project, 0, 1, 50)

    bars = _series(
        project,
        None,
        since=datetime(first, 1, 1, tzinfo=UTC),
        until=None if last is None else datetime(last, 12, 31, tzinfo=UTC),
    ).bars

    assert sum(bar.calls or 0 for bar in bars) == calls
    # A reader's zone moves them by a day at most.
    assert all(1900 < bar.since.year < bar.until.year + 1 < 2200 for bar in bars)


def test_a_range_with_nothing_in_it_has_no_bars(project: ProjectInfo) -> None:
    assert _series(project, None).bars == ()
    assert _series(project, 1, until=NOW - timedelta(hours=2)).bars == ()


def test_what_is_not_counted_yet_is_unknown_and_not_zero(project: ProjectInfo) -> None:
    _fill(project, 0, 1, 50)
    RollupState.objects.create(project_id=project.id, is_complete=False)

    assert {bar.calls for bar in _series(project, 1).bars} == {None}

    assert rebuild_some(is_over=lambda: True)
    known = NOW - timedelta(minutes=11, seconds=3)
    bars = _series(project, 5).bars
    assert [bar.calls for bar in bars if bar.calls is not None] == [1]
    assert [bar.since for bar in bars if bar.calls is not None] == [known]

    while rebuild_some(is_over=lambda: True):
        assert not _series(project, 60).is_whole

    assert _series(project, 60).is_whole


def test_bars_take_two_queries_and_the_first_call_two_more(project: ProjectInfo) -> None:
    _fill(project, 0, 3)

    for hours, queries in ((20, 2), (None, 4)):
        with CaptureQueriesContext(connection) as asked:
            _series(project, hours)
        assert len(asked) == queries
