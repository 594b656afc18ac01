"""What recording asks of the database touches what it is about, however much is stored.

On tables that have grown as a user's grow: one project, every message of the last day, a few
hundred conversations; whether or not the database was told how its tables are filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from helmdash.operations.database import statistics
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.call_names import Place, calls_at, insert_names, payloads_at
from helmdash.records.models import (
    Call,
    CallName,
    Conversation,
    ConversationMark,
    HealthChange,
    Round,
    StoredMessage,
)
from helmdash.records.statements.bulk import allocate_ids, analyze, insert_rows
from tests.factories import NOW, make_capture
from tests.recording.chats import TASK, nameless
from tests.recording.support import make_ruled_project, prompt, record
from tests.support.unanalyzed import forget_statistics

CALLS, PER_CONVERSATION, MESSAGES = 4_000, 10, 20_000
# Rows that one statement may look at: the newest calls of a model are the most (truncation).
MOST_ROWS = 300
_GROWN = (Call, CallName, Conversation, ConversationMark, HealthChange, Round, StoredMessage)
_TABLES = re.compile("|".join(rf"\b{model._meta.db_table}\b" for model in _GROWN))
# By these alone a statement meets all that was stored lately.
_NARROWS_NOTHING = {"project_id", "latest_seen_at", "started_at", "latest_at", "at"}

# PostgreSQL analyzes a table by itself within a minute of its first fifty rows.
_IS_ANALYZED = [False, True] if connection.vendor == "sqlite" else [True]
# So many may have come by then.
UNKNOWN_CONVERSATIONS = 12_000

Statement = tuple[str, Sequence[Any]]


@pytest.fixture
def grown(db: None) -> ProjectInfo:
    project = make_ruled_project(payload="full")
    record(project, *_chat("first", 3), nameless(TASK), prompt(None, conversation=None))
    calls = {"generation": [PER_CONVERSATION]}
    _multiply(Conversation, CALLS // PER_CONVERSATION, name="talk-{0}", **calls)
    talks = list(Conversation.objects.filter(name__startswith="talk-").values_list("id", flat=True))
    each = {"name": "call-{0}", "conversation_id": talks, "generation": PER_CONVERSATION}
    _multiply(Call, CALLS, **each)
    insert_names(list(Call.objects.filter(name__startswith="call-").values()))
    _multiply(StoredMessage, MESSAGES, hash="b2:{0:032x}")
    _multiply(ConversationMark, CALLS, hash="n{0:040x}", conversation_id=talks)
    return project


@pytest.mark.parametrize("is_analyzed", _IS_ANALYZED)
def test_no_statement_looks_at_more_than_it_is_about(grown: ProjectInfo, is_analyzed: bool) -> None:
    if is_analyzed:
        analyze()
    chat = nameless(TASK, "Yes?", "And then?")
    with _statements() as ran:
        record(grown, *_chat("second", 3))  # named, with a history that is sent again
        record(grown, *_chat("second", 2))  # repeats
        record(grown, prompt(3_000, conversation="talk-7", messages=_history(2)))
        record(grown, chat, nameless(TASK, reply=None, http_status=500), nameless(TASK))
        record(grown, prompt(2_000, conversation=None))

    assert {model._meta.db_table for model in (CallName, Conversation, StoredMessage)} <= {
        table for statement, _ in ran for table in _TABLES.findall(statement)
    }
    for statement, params in ran:
        assert not (wrong := list(_too_much(statement, params))), f"{statement}\n{wrong}"


def test_conversations_are_locked_one_by_one_before_they_are_analyzed(
    grown: ProjectInfo,
) -> None:
    _multiply(Conversation, UNKNOWN_CONVERSATIONS, name="new-{0}")
    forget_statistics(Conversation)
    with _statements() as ran:
        record(grown, *(prompt(2_000, conversation=f"new-{n}") for n in range(0, 300, 10)))
        record(grown, prompt(2_000, conversation="new-5"))

    locks = [each for each in ran if f'"{Conversation._meta.db_table}" t' in each[0]]
    assert len(locks) == 2
    for statement, params in locks:
        assert not (wrong := list(_too_much(statement, params))), f"{statement}\n{wrong}"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL's autovacuum does it")
def test_tables_that_have_grown_are_analyzed_one_by_one(grown: ProjectInfo) -> None:
    ran: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        ran.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert statistics.refresh() > 0
    analyzed = [sql for sql in ran if sql.startswith("ANALYZE")]
    assert {model._meta.db_table for model in (Call, StoredMessage)} <= {
        re.findall(r"\w+", sql)[-1] for sql in analyzed
    }
    # What is read of each index is bounded, whatever has grown.
    assert ran[0].startswith("PRAGMA analysis_limit=")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'records_call'")
        assert cursor.fetchone()[0] > 0


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL is told of the months")
def test_many_calls_are_found_by_their_numbers(grown: ProjectInfo) -> None:
    """Of more than some hundred it walked through all calls of the project."""
    statistics.refresh()
    rows = Call.objects.order_by("-id").values_list("id", "started_at")
    places = [Place(*row) for row in rows[: CALLS // 10]]

    with _statements() as ran:
        assert len(list(calls_at(grown.id, places))) == CALLS // 10
        list(payloads_at(grown.id, places))

    for statement, params in ran:
        assert not (wrong := list(_too_much(statement, params))), f"{statement}\n{wrong}"


def _chat(name: str, calls: int) -> list[Any]:
    return [
        make_capture(
            id=f"{name}-{number}",
            conversation=name,
            messages=_history(number),
            started_at=NOW + timedelta(seconds=number),
        )
        for number in range(calls)
    ]


def _history(turns: int) -> tuple[dict[str, str], ...]:
    return tuple({"role": "user", "content": f"turn {turn}"} for turn in range(turns + 1))


def _multiply(model: type[Any], count: int, **over: Any) -> None:
    """Rows like the newest: texts are filled with a number, of lists each is taken in turn, and a
    number is how many rows one of them has."""
    like = model.objects.order_by("-id").values().first()
    pks = allocate_ids(model, count)
    rows = []
    for number, pk in enumerate(pks):
        row = {**like, "id": pk}
        for name, value in over.items():
            match value:
                case str():
                    row[name] = value.format(number)
                case list():
                    row[name] = value[number % len(value)]
                case _:
                    row[name] = 1 + number // (count // value)
        rows.append(row)
    insert_rows(model, rows)


@contextmanager
def _statements() -> Iterator[list[Statement]]:
    """What is read or changed of tables that grow, while the block runs."""
    ran: list[Statement] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if _TABLES.search(sql) and sql.split(None, 1)[0] in {"SELECT", "UPDATE", "DELETE"}:
            ran.append((sql, params[0] if many else params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield ran


def _too_much(statement: str, params: Sequence[Any]) -> Iterator[str]:
    is_sqlite = connection.vendor == "sqlite"
    explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN (ANALYZE, FORMAT JSON)"
    # What is explained on PostgreSQL is carried out.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}", params)
        found = cursor.fetchall()
        transaction.set_rollback(True)
    if is_sqlite:
        yield from (step for *_, step in found if _is_wide(step))
        return
    (plan,) = json.loads(found[0][0]) if isinstance(found[0][0], str) else found[0][0]
    pending = [plan["Plan"]]
    while pending:
        node = pending.pop()
        pending += node.get("Plans", ())
        passed = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
        if (node["Actual Rows"] + passed) * node["Actual Loops"] > MOST_ROWS:
            yield f"{node['Node Type']} of {node.get('Relation Name')}: {node}"


def _is_wide(step: str) -> bool:
    """Whether a step of SQLite's plan goes through a table, or all of a project or a time."""
    if step.startswith("SCAN") and "VIRTUAL TABLE" not in step:
        return True
    terms = re.search(r"\((.*)\)$", step) if step.startswith("SEARCH") else None
    columns = set(re.findall(r"(\w+)[=<>]", terms[1])) if terms else set()
    return bool(columns) and columns <= _NARROWS_NOTHING
