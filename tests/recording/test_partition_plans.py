"""Every list asks only the months that it shows, among calls of a year; the planner itself says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from helmdash.queries import models, plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations.curve import call_at, call_before, curve_of, whole_of
from helmdash.queries.conversations.dropped_context import dropped_context
from helmdash.queries.conversations.timeline import timeline
from helmdash.queries.conversations.under_way import under_way
from helmdash.queries.line_edits import LineEdit, Lines, subject_of_call, try_lines
from helmdash.records.models import Call, Conversation
from helmdash.records.querysets import models_seen
from helmdash.records.statements import partitions
from helmdash.records.statements.glances import find_glance
from tests.factories import make_capture
from tests.plan_rows import make_plan
from tests.recording.support import record

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no partitions"
)

CALLS, TALKS = 24_000, 240
# One call every twenty-two minutes, from the first of a year to its end.
DAY = timedelta(days=1)
START, STEP = datetime(2025, 1, 1, 0, 5, tzinfo=UTC), timedelta(minutes=21, seconds=50)
# talk-N has a hundred calls one after the other: a day and a half, in February for this one.
TALK = "talk-30"

END = START + CALLS * STEP
Read = Callable[[ProjectInfo], object]


def page(**over: Any) -> Read:
    """The first page of a list of calls."""
    return lambda project: call_listing.page(project_id=project.id, filters=CallFilters(**over))


def second_page(project: ProjectInfo) -> object:
    first = call_listing.page(project_id=project.id, filters=CallFilters())
    return call_listing.page(project_id=project.id, filters=CallFilters(), cursor=first.next)


def find_one(project: ProjectInfo) -> calls.CallDetail:
    """One call, with those of its correlation id."""
    found = calls.find(project_id=project.id, call_id="c12345")
    assert found is not None
    return found


def try_edit(project: ProjectInfo) -> LineEdit:
    subject = subject_of_call(find_one(project).call)
    lines = Lines(caution=1_000, critical=2_000, window=128_000)
    return try_lines(project_id=project.id, subject=subject, lines=lines)


def followed(project: ProjectInfo) -> object:
    (plan,) = plans.page(project_id=project.id, now=END).items
    return plan.followed


def talk(project: ProjectInfo) -> Conversation:
    return Conversation.objects.get(project_id=project.id, name=TALK)


# What is read, and of how many months calls are asked at most.
READS: dict[str, tuple[Read, int]] = {
    "newest": (page(), 1),
    "second page": (second_page, 1),
    "by level": (page(level="healthy"), 1),
    "by model": (page(model="openai/gpt-4o"), 1),
    "by purpose": (page(purpose="chat"), 1),
    "a month": (page(since=START + 70 * DAY, until=START + 80 * DAY), 1),
    "by level in two months": (page(level="caution", since=START, until=START + 50 * DAY), 2),
    "a conversation's": (page(conversation=TALK), 1),
    "an export's beginning": (
        lambda p: next(call_listing.export(project_id=p.id, filters=CallFilters())),
        1,
    ),
    "neighbours": (
        lambda p: call_listing.neighbours(project_id=p.id, filters=CallFilters(), call_id="c12345"),
        1,
    ),
    "neighbours of a level": (
        lambda p: call_listing.neighbours(
            project_id=p.id, filters=CallFilters(level="healthy"), call_id="c12345"
        ),
        1,
    ),
    "one": (lambda p: calls.find(project_id=p.id, call_id="c12345"), 1),
    "one of a story": (lambda p: find_one(p).related, 1),
    "of a story, by its beginning": (page(q="story-2399"), 1),
    "a conversation's, by its beginning": (page(q=TALK), 1),
    "plans that were followed": (followed, 1),
    "the call before": (lambda p: call_before(project_id=p.id, call=find_one(p).call), 1),
    "under way": (lambda p: under_way(project_id=p.id, now=END, limit=5), 1),
    "models seen": (lambda p: models_seen([p.id], END - 7 * DAY), 1),
    "an edit tried": (lambda p: try_edit(p).calls, 2),
    "which are stored": (lambda p: calls.stored_ids(project_id=p.id, ids=["c1", "c23999"]), 0),
    "a model's newest": (
        lambda p: models.recent_calls(project_id=p.id, model="openai/gpt-4o"),
        1,
    ),
    "the newest": (lambda p: calls.newest_mark(project_id=p.id), 1),
    "what pages are compared by": (lambda p: calls.change_mark(), 0),
    "a curve": (lambda p: curve_of(talk(p)), 1),
    "a whole curve": (lambda p: whole_of(talk(p)), 1),
    "the call of a generation": (
        lambda p: call_at(project_id=p.id, conversation=TALK, generation=40),
        1,
    ),
    "a timeline": (lambda p: timeline(project_id=p.id, conversation_id=TALK), 1),
    "what was dropped": (lambda p: dropped_context(project_id=p.id, conversation=TALK), 1),
    "a glance": (lambda p: find_glance(project_id=p.id, name=TALK), 1),
    "a repeat": (lambda p: record(p, make_capture(id="c12345")), 1),
    "the next of a conversation": (lambda p: record(p, make_capture(conversation=TALK)), 0),
}


@pytest.fixture
def year(project: ProjectInfo) -> ProjectInfo:
    """Rows like a recorded one, with names."""
    record(project, make_capture(id="like", conversation="like", started_at=START))
    make_plan(project, "story-1200", started_at=START + 182 * DAY)
    partitions.provide(datetime(2025, month, 1, tzinfo=UTC) for month in range(1, 13))
    own = {
        "id": "100000 + n",
        "name": "'c' || n",
        "started_at": "%s + n * %s",
        "conversation_id": "100000 + n / 100",
        "generation": "1 + mod(n, 100)",
        "correlation_id": "'story-' || n / 10",
        "finish_reason": "'tool_calls'",
        "pack": "'blog.publish'",
    }
    names = [str(field.column) for field in Call._meta.concrete_fields]
    talk = {
        "id": "100000 + n",
        "name": "'talk-' || n",
        "generation": "100",
        "started_at": "%s + 100 * n * %s",
        "latest_at": "%s + (100 * n + 99) * %s",
    }
    talks = [str(field.column) for field in Conversation._meta.concrete_fields]
    with connection.cursor() as cursor:
        # What is deferred to the commit keeps tables from being analyzed.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table, columns, over, rows in (
            ("records_call", names, own, CALLS),
            ("records_conversation", talks, talk, TALKS),
        ):
            chosen = ", ".join(over.get(name, f"t.{name}") for name in columns)
            times: list[Any] = [START, STEP] * chosen.count("%s + ")
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen}"
                f" FROM (SELECT * FROM {table} LIMIT 1) t, generate_series(0, {rows - 1}) n",
                times,
            )
        cursor.execute(
            "INSERT INTO records_callname SELECT project_id, name, id, started_at,"
            " conversation_id, generation, correlation_id FROM records_call WHERE name <> 'like'"
        )
        cursor.execute("ANALYZE records_call, records_callname, records_conversation")
    return project


@pytest.mark.usefixtures("year")
def test_a_list_asks_only_its_months(project: ProjectInfo) -> None:
    wrong = {}
    for name, (read, most) in READS.items():
        with statements() as ran:
            assert read(project)
        asked = [months for statement, params in ran if (months := asked_of(statement, params))]
        assert asked or not most, name
        if any(len(months) > most for months in asked):
            wrong[name] = asked

    assert wrong == {}


@contextmanager
def statements() -> Iterator[list[tuple[str, Sequence[Any]]]]:
    """What is read of calls while the block runs."""
    ran: list[tuple[str, Sequence[Any]]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # The values that a column ever had are walked through in every month.
        if "records_call" in sql and (sql.startswith("SELECT") or "latest_at" in sql):
            ran.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield ran


def asked_of(statement: str, params: Sequence[Any]) -> set[str]:
    """The partitions of calls that a statement looks into when it is carried out."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", params)
        found = cursor.fetchall()[0][0]
        transaction.set_rollback(True)
    (plan,) = json.loads(found) if isinstance(found, str) else found
    pending, asked = [plan["Plan"]], set()
    while pending:
        node = pending.pop()
        pending += node.get("Plans", ())
        table = node.get("Relation Name", "")
        # The months ahead are there as well, and empty: one look at an index each.
        if table.startswith("records_call_2025") and node["Actual Loops"]:
            asked.add(table)
    return asked
