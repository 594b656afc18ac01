"""What PostgreSQL plans once for a connection that stores, and what it must plan each time."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import DatabaseError, DataError, connection, transaction

from helmdash.core.calls.capture import Capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, Project
from helmdash.records.statements import direct, exchanges
from helmdash.records.statements.direct import is_postgres
from tests.recording.support import record, storing
from tests.support.postgres import reach

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="SQLite's driver keeps its own"),
    pytest.mark.django_db(transaction=True),
]
TABLE = Project._meta.db_table
RENAME = f"UPDATE {TABLE} SET name = %s WHERE id = %s"


def prepared() -> list[str]:
    """The statements that are prepared on this thread's connection."""
    return [row[0] for row in direct.ask("SELECT statement FROM pg_prepared_statements", [])]


def record_two(project: ProjectInfo) -> None:
    messages = ({"role": "user", "content": "hello"},)
    for name in ("first", "second"):
        record(project, Capture(model="m", id=name, conversation=name, messages=messages))


def test_what_is_prepared_finds_few_rows_by_their_key(project: ProjectInfo) -> None:
    """A plan is kept while a table grows."""
    hello = ({"role": "user", "content": "hello"},)
    many = [
        Capture(model="m", id=f"call-{number}", conversation=f"talk-{number}", messages=hello)
        for number in range(3_000)
    ]

    def work() -> list[str]:
        record(project, *many)
        direct.tell("ANALYZE", [])
        direct.tell("SET plan_cache_mode = force_generic_plan", [])
        record_two(project)
        record(project, Capture(model="m", id="third", conversation="first"))
        prepared = direct.ask("SELECT name FROM pg_prepared_statements", [])
        return [plan_of(name) for (name,) in prepared]

    plans = storing(work)

    growing = "records_(call|callname|conversation|storedmessage|round)"
    found = [plan for plan in plans if re.search(f"Scan .*on {growing}", plan)]
    assert len(found) >= 4, plans
    by_key = r"Index Cond: .*\b(id|name|hash|conversation_id)\b"
    assert [plan for plan in found if not re.search(by_key, plan)] == []


def plan_of(name: str) -> str:
    """How the database does what is prepared under a name, whatever the values are."""
    asked = "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = %s"
    ((count,),) = direct.ask(asked, [name])
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    lines = direct.ask(f"EXPLAIN (COSTS OFF) EXECUTE {name}{values}", [])
    return "\n".join(line for (line,) in lines)


def test_one_plan_serves_whatever_is_asked(project: ProjectInfo) -> None:
    """PostgreSQL would plan anew for each array, taking any array for longer than ours are."""
    messages = ({"role": "user", "content": "hello"}, {"role": "user", "content": "again"})

    def work() -> list[tuple[str, int]]:
        for number in range(8):
            told = Capture(model="m", id=f"call-{number}", conversation="talk", messages=messages)
            record(project, told)
        planned = "SELECT statement, custom_plans FROM pg_prepared_statements"
        return [(statement, times) for statement, times in direct.ask(planned, []) if times]

    assert storing(work) == []


def test_plans_are_made_anew_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "SELECT k FROM growing WHERE k = %s"

    def plan() -> str:
        direct.ask_prepared(asked, [1])
        wanted = "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%%growing%%'"
        ((name,),) = direct.ask(wanted, [])
        return plan_of(name)

    def work() -> list[str]:
        monkeypatch.setattr(exchanges, "PLANS_SECONDS", 1_000.0)
        direct.tell("CREATE TEMPORARY TABLE growing (k int PRIMARY KEY)", [])
        direct.tell("INSERT INTO growing VALUES (1)", [])
        direct.tell("ANALYZE growing", [])
        direct.tell("SET plan_cache_mode = force_generic_plan", [])
        plans = [plan()]
        direct.tell("INSERT INTO growing SELECT n FROM generate_series(2, 20000) n", [])
        plans.append(plan())
        monkeypatch.setattr(exchanges, "PLANS_SECONDS", 0.0)
        return [*plans, plan()]

    first, grown, later = storing(work)

    assert "Seq Scan" in first
    assert "Seq Scan" in grown
    assert "Index" in later


def test_what_a_migration_makes_stale_is_prepared_anew() -> None:
    asked = "SELECT v FROM changing WHERE k = %s"

    def work() -> list[tuple[object, ...]]:
        direct.tell("CREATE TEMPORARY TABLE changing (k int PRIMARY KEY, v int)", [])
        direct.tell("INSERT INTO changing VALUES (1, 2)", [])
        direct.ask_prepared(asked, [1])
        direct.tell("ALTER TABLE changing ALTER v TYPE bigint", [])
        with pytest.raises(DatabaseError, match="cached plan"):
            direct.ask_prepared(asked, [1])
        return direct.ask_prepared(asked, [1])

    assert storing(work) == [(2,)]


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "_MOST_KEPT", 3)

    def work() -> int:
        for number in range(20):
            direct.ask_prepared(f"SELECT {number} + %s::int", [1])
        return len(prepared())

    assert storing(work) <= 4


def test_other_connections_prepare_nothing(project: ProjectInfo) -> None:
    record_two(project)

    assert prepared() == []


def test_after_a_transaction_that_broke_all_is_prepared_anew(project: ProjectInfo) -> None:
    def work() -> int:
        record_two(project)
        with transaction.atomic():
            record(project, Capture(model="m", id="third"))
            transaction.set_rollback(True)
        record(project, Capture(model="m", id="fourth"))
        return len(prepared())

    assert storing(work) > 0
    assert set(Call.objects.values_list("name", flat=True)) == {"first", "second", "fourth"}


def test_a_change_apart_that_fails_leaves_the_transaction_as_it_was(project: ProjectInfo) -> None:
    def work() -> int:
        with transaction.atomic():
            direct.tell(RENAME, ["before", project.id])
            with pytest.raises(DataError):
                direct.change_apart(RENAME, ["x" * 10_000, project.id])
            return direct.change_apart(f"UPDATE {TABLE} SET slug = %s WHERE id = %s", ["s", -1])

    assert storing(work) == 0
    assert Project.objects.get(pk=project.id).name == "before"


def test_nothing_is_prepared_behind_a_pooler(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pooler() as (host, port):
        settings = connection.settings_dict

        def work() -> list[str]:
            connection.settings_dict.update(HOST=host, PORT=port)
            record_two(project)
            return prepared()

        monkeypatch.setitem(settings, "HOST", settings["HOST"])
        assert storing(work) == []
    assert Call.objects.count() == 2


@contextmanager
def pooler() -> Iterator[tuple[str, int]]:
    """What stands before the database as pgbouncer does: it tells who connects of a process that is
    not the one which serves it."""
    info = connection.connection.info if connection.connection else None
    if info is None:
        connection.ensure_connection()
        info = connection.connection.info
    server = (info.host, info.port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, server), daemon=True)
        thread.start()
        yield "127.0.0.1", listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _serve(listener: socket.socket, server: tuple[str, int]) -> None:
    try:
        client, _ = listener.accept()
    except OSError:
        return
    behind = reach(server)
    with client, behind:
        up = threading.Thread(target=_copy, args=(client, behind, _as_it_is), daemon=True)
        up.start()
        _copy(behind, client, _of_another_process)
        up.join(5)


def _copy(one: socket.socket, other: socket.socket, change: Callable[[bytes], bytes]) -> None:
    while found := one.recv(65_536):
        other.sendall(change(found))
    other.shutdown(socket.SHUT_WR)


def _as_it_is(found: bytes) -> bytes:
    return found


def _of_another_process(found: bytes) -> bytes:
    """BackendKeyData is `K`, twelve as its length, the process and a secret."""
    head, key, rest = found.partition(b"K\0\0\0\x0c")
    return head + key + b"\0\0\0\x01" + rest[4:] if key and b"server_version" in head else found


@pytest.mark.parametrize("calls", [1, 40])
def test_a_stale_plan_refuses_no_calls(project: ProjectInfo, calls: int) -> None:
    """A migration comes while calls are stored."""
    changing = "ALTER TABLE records_callname ALTER call_id TYPE"

    def work() -> None:
        def some(name: str) -> list[Capture]:
            return [Capture(model="m", id=f"{name} {number}") for number in range(calls)]

        record(project, *some("before"))
        direct.tell(f"{changing} numeric", [])
        try:
            record(project, *some("after"))
        finally:
            direct.tell(f"{changing} bigint", [])
        record(project, *some("last"))

    storing(work)

    assert Call.objects.count() == 3 * calls
