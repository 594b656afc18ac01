"""Lists of several values: the same rows as by one statement, each value found by its index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection

from helmdash.core.text.query_terms import parse_query
from helmdash.operations.database import statistics
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import facets as call_facets
from helmdash.queries.calls import filters as call_filters
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls import series
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.terms import CALL_TERMS
from helmdash.queries.connecting import connection as connection_of
from helmdash.queries.conversations import listing
from helmdash.queries.conversations.facets import facets
from helmdash.queries.conversations.filters import CONVERSATION_TERMS, ConversationFilters
from helmdash.queries.lists.by_value import by_value, first_rows, first_values
from helmdash.queries.models import recent_calls
from helmdash.queries.plans.filters import PLAN_TERMS
from helmdash.records.models import Call, CallName, Conversation, PlanRecord
from helmdash.records.statements.bulk import allocate_ids, analyze, insert_rows
from tests.factories import NOW, make_capture
from tests.pages.test_conversation_search import most_rows
from tests.plan_rows import make_plan
from tests.recording.support import record

# Of the old ones as many as let a planner believe that every third call is one.
SINCE_THEN, OLD, OLDER = 3_000, 12, 1_200
LONG_AGO = timedelta(days=20)
# With the one that tells that there are more.
MOST_OF_PAGE = 51


@pytest.fixture
def grown(project: ProjectInfo) -> ProjectInfo:
    """Calls of long ago, and many since that have other values."""
    words = [
        {"model": f"old/{name}", "pack": f"pack-{name}", "finish_reason": finish}
        for name, finish in (("one", "length"), ("two", "tool_calls"))
    ]
    record(
        project,
        *(
            make_capture(
                id=f"old-{number}",
                conversation=f"old-{number}",
                started_at=NOW - LONG_AGO - timedelta(seconds=number // 3),
                **words[number % 2],
            )
            for number in range(OLD)
        ),
    )
    record(project, make_capture(id="since", conversation="since", started_at=NOW))
    for model, field in ((Call, "started_at"), (Conversation, "latest_at")):
        like = {row["name"]: row for row in model.objects.values()}
        rows = []
        for number, pk in enumerate(allocate_ids(model, SINCE_THEN + OLDER)):
            n = number - SINCE_THEN
            kept, name, at = like["since"], f"since-{number}", NOW - timedelta(minutes=number)
            if n >= 0:
                at = NOW - LONG_AGO - timedelta(minutes=1 + n)
                kept, name = like[f"old-{n % 2}"], f"older-{n}"
            rows.append({**kept, "id": pk, "name": name, "started_at": at, field: at})
        insert_rows(model, rows)
    look_at_tables()
    return project


def look_at_tables() -> None:
    """As the product has the database do: of SQLite's indexes it sees the first rows alone."""
    if connection.vendor == "postgresql":
        analyze()
    else:
        statistics.refresh()


@contextmanager
def statements() -> Iterator[list[tuple[str, Sequence[Any]]]]:
    """What is read of calls and conversations in an order."""
    ran: list[tuple[str, Sequence[Any]]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT") and "ORDER BY" in sql and "_at" in sql:
            ran.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield ran


def walks(statement: str, params: Sequence[Any]) -> bool:
    """Whether a statement walks along what came since."""
    if connection.vendor == "postgresql":
        # So small a table it may as well read whole where most of what is wanted is asked for.
        most = re.search(r"LIMIT (\d+)$", statement)
        is_page = most is not None and int(most[1]) <= MOST_OF_PAGE
        return is_page and most_rows(statement, params) > SINCE_THEN // 2
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", params)
        plan = str(cursor.fetchall())
    by_time = ("call_by_time", "conversation_by_time_and_name", "plan_by_time")
    return any(f"USING INDEX {name} (" in plan for name in by_time)


# The newest first; those of one second by their number, the later one first.
NEWEST = [name for _, _, name in sorted((n // 3, -n, f"old-{n}") for n in range(OLD))]
EXPECTED = [*NEWEST, *(f"older-{n}" for n in range(OLDER))]
NAMED_ONE = [name for name in EXPECTED if int(name.split("-")[1]) % 2 == 0]
QUERIES = ["model:old/*", "model:old/one,two", "pack:pack-one,pack-two", "finish:length,tool_calls"]


@pytest.mark.parametrize("query", QUERIES)
def test_calls_of_long_ago_are_found_by_their_values(grown: ProjectInfo, query: str) -> None:
    terms = parse_query(query, CALL_TERMS.fields).terms
    # What is tried on each comes on top.
    tried = parse_query(f"{query} -has:cut", CALL_TERMS.fields).terms
    for each in (terms, tried):
        asked: dict[str, Any] = {"project_id": grown.id, "filters": CallFilters(terms=each)}
        with statements() as ran:
            page = call_listing.page(**asked)
            turned = call_listing.page(**asked, sort=call_listing.OLDEST)
            beside = call_listing.neighbours(**asked, call_id=NEWEST[5])
            found = call_facets.facets(**asked)
            series.call_series(**asked, now=NOW, split=series.Split.LEVEL)

        assert [call.id for call in page.items] == EXPECTED[:50]
        assert [call.id for call in turned.items] == EXPECTED[:-51:-1]
        assert (beside.before, beside.after) == (NEWEST[4], NEWEST[6])
        assert (found.rows, found.is_all) == (len(EXPECTED), True)
        assert [one for one in ran if walks(*one)] == []


def test_a_name_of_several_providers_finds_calls_of_long_ago(grown: ProjectInfo) -> None:
    with statements() as ran:
        calls = call_listing.page(project_id=grown.id, filters=CallFilters(model="one"))
        talks = listing.page(project_id=grown.id, filters=ConversationFilters(model="one"))

    assert [each.id for each in calls.items] == NAMED_ONE[:50]
    assert [each.id for each in talks.items] == [each.id for each in calls.items]
    assert [each for each in ran if walks(*each)] == []


def test_conversations_of_long_ago_are_found_by_their_values(grown: ProjectInfo) -> None:
    terms = parse_query("model:old/one,old/two", CONVERSATION_TERMS.fields).terms
    asked: dict[str, Any] = {"project_id": grown.id, "filters": ConversationFilters(terms=terms)}
    with statements() as ran:
        page = listing.page(**asked)
        turned = listing.page(**asked, sort=listing.OLDEST)
        beside = listing.neighbours(**asked, conversation_id=NEWEST[5])
        found = facets(**asked)

    assert [each.id for each in page.items] == EXPECTED[:50]
    assert [each.id for each in turned.items] == EXPECTED[:-51:-1]
    assert (beside.before, beside.after) == (NEWEST[4], NEWEST[6])
    assert (found.rows, found.is_all) == (len(EXPECTED), True)
    assert [each for each in ran if walks(*each)] == []


def test_a_client_and_a_model_of_long_ago_are_told_of(grown: ProjectInfo) -> None:
    calls = Call.objects.filter(project_id=grown.id)
    calls.filter(model_key="old/one").update(client_name="codex")
    calls.filter(model_key="old/two").update(client_name="codex-tui")
    look_at_tables()
    with statements() as ran:
        found = connection_of(
            project_id=grown.id,
            clients=["codex", "codex-tui"],
            since=NOW + timedelta(minutes=1),
            sees_refusals=False,
        )
        recent = recent_calls(project_id=grown.id, model="one", limit=3)

    assert found.seen_before == NOW - LONG_AGO
    assert [each.id for each in recent] == NAMED_ONE[:3]
    # But for those of the last minutes.
    assert [each for each in ran if "LIMIT 20" not in each[0] and walks(*each)] == []


@pytest.mark.parametrize("since", [None, NOW - 2 * LONG_AGO])
def test_calls_of_long_ago_are_found_by_their_ids(
    grown: ProjectInfo, since: datetime | None
) -> None:
    """By the beginning of their own, and of their conversation's."""
    for names, found_no_more in ((NEWEST[:6], Conversation), (NEWEST[6:], CallName)):
        for name in names:
            found_no_more.objects.filter(project_id=grown.id, name=name).update(name=f"x-{name}")
    asked: dict[str, Any] = {
        "project_id": grown.id,
        "filters": CallFilters(q="old-", since=since, until=NOW + timedelta(days=1)),
    }
    with statements() as ran:
        page = call_listing.page(**asked)
        turned = call_listing.page(**asked, sort=call_listing.OLDEST)
        rest = call_listing.page(**asked, cursor=call_listing.page(**asked, limit=4).next)
        beside = call_listing.neighbours(**asked, call_id=NEWEST[5])
        found = call_facets.facets(**asked)
        bars = series.call_series(**asked, now=NOW, split=series.Split.LEVEL)

    assert [call.id for call in page.items] == NEWEST
    assert [call.id for call in turned.items] == NEWEST[::-1]
    assert [call.id for call in rest.items] == NEWEST[4:]
    assert (beside.before, beside.after) == (NEWEST[4], NEWEST[6])
    assert (found.rows, sum(bar.calls or 0 for bar in bars.bars)) == (OLD, OLD)
    assert [each for each in ran if walks(*each)] == []


def test_plans_of_long_ago_are_found_by_their_values(project: ProjectInfo) -> None:
    for n in range(OLD):
        name = "one" if n % 2 else "two"
        at = NOW - LONG_AGO - timedelta(minutes=n)
        make_plan(project, f"old-{n}", model=f"old/{name}", caller=name, started_at=at)
    make_plan(project, "since", model="new/one", caller="new", started_at=NOW)
    like = {row["name"]: row for row in PlanRecord.objects.values()}
    rows = []
    for number, pk in enumerate(allocate_ids(PlanRecord, SINCE_THEN + OLDER)):
        n = number - SINCE_THEN
        kept, name, at = like["since"], f"since-{number}", NOW - timedelta(minutes=number)
        if n >= 0:
            at = NOW - LONG_AGO - timedelta(minutes=OLD + n)
            kept, name = like[f"old-{n % 2}"], f"older-{n}"
        rows.append({**kept, "id": pk, "name": name, "started_at": at})
    insert_rows(PlanRecord, rows)
    look_at_tables()
    asked: dict[str, Any] = {"project_id": project.id, "now": NOW}
    for query in ("model:old/*", "caller:one,two"):
        terms = parse_query(query, PLAN_TERMS.fields).terms
        with statements() as ran:
            page = plans.page(**asked, terms=terms)
            beside = plans.neighbours(**asked, plan_id="old-5", terms=terms)
            found = plans.facets(**asked, terms=terms)
            read = plans.newest_plans(**asked, terms=terms)

        assert [each.id for each in page.items][:OLD] == [f"old-{n}" for n in range(OLD)]
        assert (beside.before, beside.after) == ("old-4", "old-6")
        assert (found.rows, len(read.rows)) == (OLD + OLDER, OLD + OLDER)
        assert [each for each in ran if walks(*each)] == []


def test_pages_of_values_are_those_of_one_statement(grown: ProjectInfo) -> None:
    rows = Call.objects.filter(
        project_id=grown.id,
        model_key__in=["old/two", "openai/gpt-4o", "old/one", "nobody/knows", "old/two"],
        finish_reason__in=["length", "stop", "tool_calls", "other", "error"],
    )
    assert len(by_value(rows)) == 4
    for order, most in product((("started_at", "id"), ("-started_at", "-id")), (1, 7, 5_000)):
        ordered = rows.order_by(*order)
        expected = list(ordered[:most])
        assert first_rows(ordered, "started_at", most) == expected
        names = first_values(ordered, "started_at", most, ["name", "level"])
        assert names == [(row.name, row.level) for row in expected]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL knows how many lie between")
def test_rows_far_apart_are_read_by_their_ids(grown: ProjectInfo) -> None:
    """Nothing between them is looked at."""
    apart = [f"since-{n}" for n in range(1, 2_900, 100)] + [f"older-{n}" for n in range(1, 90, 9)]
    rows = Call.objects.filter(
        project_id=grown.id, model_key__in=["old/one", "old/two", "openai/gpt-4o"], name__in=apart
    )
    ran: list[tuple[str, Sequence[Any]]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        ran.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        found = first_rows(rows.order_by("-started_at", "-id"), "started_at", 51)

    assert [row.name for row in found] == apart
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {ran[-1][0]}", ran[-1][1])
        assert "USING INTEGER PRIMARY KEY" in str(cursor.fetchall())


def test_a_row_that_goes_between_the_statements_leaves_a_full_page(grown: ProjectInfo) -> None:
    rows = Call.objects.filter(project_id=grown.id, model_key__in=["old/one", "old/two"])
    ordered = rows.order_by("-started_at", "-id")
    went: list[str] = []

    def delete(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not went and "records_call" in sql and '"id" IN (' in sql:
            went.append(NEWEST[1])
            rows.filter(name=NEWEST[1]).delete()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(delete):
        found = first_rows(ordered, "started_at", 5)

    assert went
    assert [row.name for row in found] == [NEWEST[0], *NEWEST[2:6]]


@pytest.mark.parametrize("most", [2, 99, 500])
def test_pages_go_on_where_each_value_is_looked_at_for_a_share(
    grown: ProjectInfo, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(call_filters, "MOST_TRIED", most)
    terms = parse_query("model:old/one,old/two -has:cut", CALL_TERMS.fields).terms
    for sort, is_turned in ((call_listing.NEWEST, False), (call_listing.OLDEST, True)):
        found: list[str] = []
        cursor = None
        for _ in range(12):
            page = call_listing.page(
                project_id=grown.id, filters=CallFilters(terms=terms), cursor=cursor, sort=sort
            )
            assert len(page.items) <= most
            found += [call.id for call in page.items]
            cursor = page.next
        assert found == (EXPECTED[::-1] if is_turned else EXPECTED)[: len(found)]
        assert len(found) >= 12
