"""Conversations by the beginning or a part of their id, and those of one call: what is found, and
that a page looks at a bounded number of rows, however many conversations there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.list_series import Countable
from helmdash.queries.conversations import filters, listing, over_time
from helmdash.queries.conversations.facets import facets
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records.models import Conversation
from helmdash.records.statements.bulk import allocate_ids, analyze, insert_rows
from tests.factories import NOW, make_capture
from tests.recording.support import record

TRIED, TALKS = 100, 5_000


@pytest.fixture
def talks(project: ProjectInfo) -> ProjectInfo:
    """The newest first: web-2, my-web, of two calls talk-2 and talk-1, web-1."""
    names = ("web-2", "my-web", "talk-2", "talk-1", "web-1")
    for minutes, name in enumerate(names):
        for call in range(1 + name.startswith("talk")):
            at = NOW - timedelta(minutes=minutes, seconds=-call)
            record(project, make_capture(id=f"{name}-{call}", conversation=name, started_at=at))
    return project


def _found(project: ProjectInfo, **over: Any) -> list[list[str]]:
    """The ids of each page."""
    pages, cursor = [], None
    while True:
        asked = ConversationFilters(**over)
        page = listing.page(project_id=project.id, filters=asked, cursor=cursor)
        pages.append([each.id for each in page.items])
        cursor = page.next
        if cursor is None:
            return pages


def test_the_beginning_of_an_id_is_found_however_old(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _found(talks, q="web") == [["web-2", "my-web", "web-1"]]
    monkeypatch.setattr(filters, "MOST_TRIED", 2)

    assert _found(talks, q="web-1") == [["web-1"]]
    assert _found(talks, q="web") == [["web-2", "web-1"]]


def test_a_part_of_an_id_is_looked_for_page_by_page(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _found(talks, q="EB") == [["web-2", "my-web", "web-1"]]
    monkeypatch.setattr(filters, "MOST_TRIED", 2)

    assert _found(talks, q="EB") == [["web-2", "my-web"], [], ["web-1"]]
    assert _found(talks, q="alk-1") == [[], ["talk-1"], []]


def test_those_of_one_call_are_looked_for_page_by_page(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _found(talks, is_one_shot=True) == [["web-2", "my-web", "web-1"]]
    monkeypatch.setattr(filters, "MOST_TRIED", 2)

    assert _found(talks, is_one_shot=True) == [["web-2", "my-web"], [], ["web-1"]]


def test_those_of_many_calls_are_looked_for_among_those_of_several(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = NOW - timedelta(minutes=3, seconds=-2)
    record(talks, make_capture(id="talk-1-2", conversation="talk-1", started_at=at))
    assert _found(talks, min_calls=3) == [["talk-1"]]
    monkeypatch.setattr(filters, "MOST_TRIED", 1)

    assert _found(talks, min_calls=3) == [[], ["talk-1"]]


@pytest.mark.parametrize("until", [None, NOW + timedelta(days=1)])
def test_values_are_counted_of_those_with_a_part_of_an_id(
    talks: ProjectInfo, until: datetime | None
) -> None:
    asked = ConversationFilters(q="EB", until=until)

    found = facets(project_id=talks.id, filters=asked)

    assert (found.rows, found.is_all) == (3, True)
    assert found.count("model", "openai/gpt-4o") == 3


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite tells no rows of a plan")
@pytest.mark.parametrize(
    "asked",
    [
        {"q": "nothing"},
        {"q": "rown-49"},
        {"q": "grown-4999"},
        {"q": "web-1"},
        {"is_one_shot": True},
        {"min_calls": 3},
        {"q": "nothing", "level": "healthy"},
    ],
    ids=str,
)
@pytest.mark.parametrize("sort", [listing.NEWEST, listing.ATTENTION])
def test_a_page_looks_at_a_bounded_number(
    talks: ProjectInfo, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], sort: str
) -> None:
    monkeypatch.setattr(filters, "MOST_TRIED", TRIED)
    monkeypatch.setattr("helmdash.queries.lists.sorting.MOST_SORTED", TRIED)
    _grow()
    wanted = ConversationFilters(**asked)

    with statements() as ran:
        listing.page(project_id=talks.id, filters=wanted, sort=sort)
        over_time.newest_moments(project_id=talks.id, filters=wanted)

    assert ran
    for statement, params in ran:
        assert most_rows(statement, params) <= TRIED + 1, statement


def test_a_part_of_an_id_is_looked_for_in_an_index_alone(talks: ProjectInfo) -> None:
    _grow()
    asked = ConversationFilters(q="rown-49")

    with statements() as ran:
        assert listing.page(project_id=talks.id, filters=asked).items
        assert list_of_moments(talks, asked).first_at() is not None

    tried = [each for each in ran if "LIKE" in each[0] and "IN (SELECT" in each[0]]
    assert len(tried) == 2
    for statement, params in tried:
        assert "conversation_by_time_and_name" in (plan := plan_of(statement, params))
        assert ("Index Only Scan" if connection.vendor == "postgresql" else "COVERING") in plan


def list_of_moments(project: ProjectInfo, asked: ConversationFilters) -> Countable:
    return over_time.newest_moments(project_id=project.id, filters=asked)


def plan_of(statement: str, params: Sequence[Any]) -> str:
    """Of PostgreSQL that by the order of an index: of so few rows it may take another way, as long
    as no vacuum has seen them."""
    how = "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            how = "EXPLAIN"
            cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"{how} {statement}", params)
        return str(cursor.fetchall())


def _grow() -> None:
    """Older conversations of two calls, which need nobody."""
    like = Conversation.objects.filter(name="talk-1").values().get()
    rows = []
    for number, pk in enumerate(allocate_ids(Conversation, TALKS)):
        at = NOW - timedelta(days=1, minutes=number)
        own = {"id": pk, "name": f"grown-{number}", "started_at": at, "latest_at": at}
        rows.append({**like, **own})
    insert_rows(Conversation, rows)
    analyze()


@contextmanager
def statements() -> Iterator[list[tuple[str, Sequence[Any]]]]:
    ran: list[tuple[str, Sequence[Any]]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "records_conversation" in sql:
            ran.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield ran


def most_rows(statement: str, params: Sequence[Any]) -> int:
    """The most that a step of a statement looks at."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", params)
        found = cursor.fetchall()[0][0]
    (plan,) = json.loads(found) if isinstance(found, str) else found
    pending, most = [plan["Plan"]], 0
    while pending:
        node = pending.pop()
        pending += node.get("Plans", ())
        passed = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
        most = max(most, int((node["Actual Rows"] + passed) * node["Actual Loops"]))
    return most
