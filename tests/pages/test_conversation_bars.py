"""Conversations over time: counted by PostgreSQL, so many of them, and as their rows say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.list_series import list_series
from helmdash.queries.calls.series import Bar, count_rows
from helmdash.queries.conversations import over_time
from helmdash.queries.conversations.filters import ConversationFilters, filtered
from helmdash.records.models import Conversation
from helmdash.records.statements.bulk import allocate_ids, analyze, insert_rows
from tests.factories import NOW, make_capture
from tests.pages.test_conversation_search import most_rows, statements
from tests.recording.support import record

TALKS, MOST = 5_000, 100


@pytest.fixture
def talks(project: ProjectInfo) -> ProjectInfo:
    """One each half hour, the newest first: of two models, three levels, one call or more."""
    record(project, make_capture(conversation="like", started_at=NOW))
    like = Conversation.objects.filter(name="like").values().get()
    rows = []
    for number, pk in enumerate(allocate_ids(Conversation, TALKS)):
        at = NOW - timedelta(minutes=30 * number, seconds=1)
        own: dict[str, Any] = {"id": pk, "name": f"talk-{number}", "started_at": at}
        own |= {"latest_at": at, "model_key": f"acme/{number % 2}", "severity": 1 + number % 3}
        rows.append({**like, **own, "generation": 1 + number % 4})
    insert_rows(Conversation, rows)
    Conversation.objects.filter(name="like").delete()
    analyze()
    return project


def _bars(project: ProjectInfo, filters: ConversationFilters) -> Sequence[Bar]:
    return list_series(
        over_time.newest_moments(project_id=project.id, filters=filters),
        project_id=project.id,
        since=filters.since,
        until=filters.until,
        now=NOW,
        first_at=lambda: over_time.first_moment(project_id=project.id),
    ).bars


ASKED: list[dict[str, Any]] = [
    {},
    {"since": NOW - timedelta(days=3)},
    {"since": NOW - timedelta(days=30), "until": NOW - timedelta(days=2, minutes=7)},
    {"model": "acme/1"},
    {"level": "critical"},
    {"min_calls": 2},
    {"min_calls": 3, "model": "acme/0"},
    {"model": "nobody/1"},
    {"since": NOW - timedelta(days=3), "trial": "0"},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_database_counts_what_the_rows_say(talks: ProjectInfo, asked: dict[str, Any]) -> None:
    filters = ConversationFilters(**asked)
    found = over_time.newest_moments(project_id=talks.id, filters=filters)

    counted = _bars(talks, filters)

    rows = filtered(talks.id, filters).values_list("latest_at", "severity")
    told = [(at, over_time._LEVEL_OF[severity]) for at, severity in rows]
    empty = [Bar(since=bar.since, until=bar.until, calls=0) for bar in counted]
    assert found.read_from is None
    assert tuple(counted) == count_rows(empty, told)[0]
    assert sum(bar.calls or 0 for bar in counted) == sum(
        filters.until is None or at < filters.until for at, _ in told
    )


@pytest.mark.parametrize("asked", [{}, {"model": "acme/1"}, {"level": "critical"}], ids=str)
def test_so_many_are_counted_and_those_of_before_are_estimates(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    _few(monkeypatch)
    calls = [
        make_capture(id=f"call-{number}", started_at=NOW - timedelta(hours=4 * number, minutes=1))
        for number in range(TALKS // 8)
    ]
    record(talks, *calls)
    fold_all()
    filters = ConversationFilters(**asked)

    bars = _bars(talks, filters)

    exact = [bar for bar in bars if not bar.is_estimate]
    share = {"model": 2, "level": 3}.get(next(iter(asked), ""), 1)
    assert sum(bar.calls or 0 for bar in exact) <= MOST
    assert len(exact) < len(bars) / 10
    assert sum(bar.calls or 0 for bar in bars) == pytest.approx(TALKS / share, rel=0.3)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite tells no rows of a plan")
@pytest.mark.parametrize(
    "asked",
    [{}, {"since": NOW - timedelta(days=90)}, {"model": "acme/1"}, {"min_calls": 2}],
    ids=str,
)
def test_bars_look_at_a_bounded_number(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    _few(monkeypatch)
    with statements() as ran:
        _bars(talks, ConversationFilters(**asked))

    assert ran
    for statement, params in ran:
        assert most_rows(statement, params) <= MOST + 1, statement


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite reads the rows")
def test_bars_before_a_moment_are_told_by_the_newest_calls_alone(talks: ProjectInfo) -> None:
    """No index has the first ones beside them."""
    with statements() as ran:
        _bars(talks, ConversationFilters(until=NOW - timedelta(days=2)))

    assert ran
    assert not [statement for statement, _ in ran if "started_at" in statement]


def test_bars_take_few_queries(talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far back, when the first was, and their number; then how many calls there were."""
    with CaptureQueriesContext(connection) as queries:
        _bars(talks, ConversationFilters())
    is_counted = connection.vendor == "postgresql"
    assert len(queries) == (3 if is_counted else 1)

    _few(monkeypatch)
    with CaptureQueriesContext(connection) as queries:
        _bars(talks, ConversationFilters())
    assert len(queries) == (5 if is_counted else 4)


def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_time, "MOST_COUNTED", MOST)
    monkeypatch.setattr(over_time, "MOST_LISTED", MOST)
    monkeypatch.setattr("helmdash.queries.calls.list_series.MOST_LISTED", MOST)
