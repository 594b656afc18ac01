"""What is told together is sent as it is told, and answered at the end: PostgreSQL begins while the
rest is made, and whatever ends the block before leaves a connection that is of use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)

from helmdash.core.calls.capture import Capture
from helmdash.records.models import Call, Project, StoredMessage
from helmdash.records.statements import bulk, direct
from helmdash.records.statements.direct import is_postgres, tell_prepared, told_together
from tests.recording.support import make_ruled_project, prompt, record, storing

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="SQLite is told without a message"),
    pytest.mark.django_db(transaction=True),
]

LOCK, HELD = "SELECT pg_advisory_lock(%s)", "SELECT count(*) FROM pg_locks WHERE objid = %s"
RENAME = "UPDATE records_project SET name = %s WHERE id = %s"
NUMBER = 20_461


def is_held_soon(number: int) -> bool:
    """Whether some connection takes the advisory lock within some seconds: asked by another one."""
    other = connections.create_connection("default")
    try:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with other.cursor() as cursor:
                cursor.execute(HELD, [number])
                if cursor.fetchone()[0]:
                    return True
            time.sleep(0.01)
        return False
    finally:
        other.close()


def test_the_database_begins_with_what_is_told_before_the_rest_is() -> None:
    def work() -> bool:
        with transaction.atomic(), told_together():
            tell_prepared(LOCK, [NUMBER])
            return is_held_soon(NUMBER)

    assert storing(work)


class StoppedError(Exception):
    """Of ours, between two statements."""


def stop() -> None:
    raise StoppedError


def tell_what_cannot_be_given() -> None:
    tell_prepared(RENAME, ["\0", -1])


def tell_what_is_refused() -> None:
    tell_prepared("INSERT INTO records_project (id) VALUES (%s)", [-1])


def ask_what_is_refused() -> None:
    direct.ask("SELECT nothing FROM records_project", [])


BROKEN: dict[str, tuple[Sequence[Callable[[], None]], type[Exception]]] = {
    "our own code fails": ([stop], StoppedError),
    "a value cannot be given": ([tell_what_cannot_be_given], DataError),
    "the database refuses one": ([tell_what_is_refused], IntegrityError),
    "it refuses one, and then our own code fails": ([tell_what_is_refused, stop], StoppedError),
    "Django asks, and is refused": ([ask_what_is_refused], ProgrammingError),
    "it refuses one, and Django asks": (
        [tell_what_is_refused, ask_what_is_refused],
        IntegrityError,
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_breaks_off_leaves_nothing_and_a_connection_of_use(how: str) -> None:
    project = make_ruled_project()
    name = Project.objects.get(pk=project.id).name
    breaks, kind = BROKEN[how]

    def tell() -> None:
        with transaction.atomic(), told_together(ends=True):
            tell_prepared(RENAME, ["changed", project.id])
            for each in breaks:
                each()
            tell_prepared(RENAME, ["changed later", project.id])

    def work() -> None:
        record(project, prompt(5, id="first"))
        before = connection.connection
        with pytest.raises(kind):
            tell()
        assert connection.connection is before
        assert not direct.is_told_together()
        record(project, prompt(5, id="second"))

    storing(work)

    assert Project.objects.get(pk=project.id).name == name
    assert sorted(Call.objects.values_list("name", flat=True)) == ["first", "second"]


def test_more_than_a_connection_holds_is_told() -> None:
    """While the server does not read."""
    long = "x" * 400_000

    def work() -> int:
        with transaction.atomic(), told_together():
            tell_prepared("CREATE TEMPORARY TABLE told (v text) ON COMMIT DROP", [])
            tell_prepared("SELECT pg_sleep(0.2)", [])
            for _ in range(30):
                tell_prepared("INSERT INTO told VALUES (%s)", [long])
            return int(direct.ask("SELECT sum(length(v)) FROM told", [])[0][0])

    assert storing(work) == 30 * 400_000


def test_a_connection_that_is_lost_on_the_way_is_called_lost() -> None:
    def work() -> None:
        with transaction.atomic(), told_together():
            tell_prepared("SELECT 1", [])
            end_from_outside(connection.connection.info.backend_pid)
            for _ in range(3):
                tell_prepared("SELECT %s::text", ["x" * 1_000_000])

    with pytest.raises(OperationalError) as raised:
        storing(work)

    assert "pipeline" not in str(raised.value)


def end_from_outside(process: int) -> None:
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
    other.close()


@pytest.mark.parametrize("calls", [100, 499, 600])
def test_a_batch_of_any_size_is_stored(calls: int) -> None:
    """Some go by COPY."""
    project = make_ruled_project(payload="full")
    told = batch(calls)

    def work() -> list[bool]:
        first = record(project, *told)
        again = record(project, *told)
        return [answer.duplicate for answer in (*first, *again)]

    assert storing(work) == [False] * calls + [True] * calls
    assert Call.objects.count() == calls


def batch(calls: int) -> list[Capture]:
    return [
        prompt(
            5,
            id=f"call {number}",
            conversation=f"talk {number % 7}",
            messages=({"role": "user", "content": f"question {number}"},),
        )
        for number in range(calls)
    ]


def test_long_texts_are_told_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection keeps the memory of the longest statement it ever sent."""
    project, said = make_ruled_project(payload="full"), list[int]()
    tell = direct.tell_prepared

    def noted(statement: str, values: Sequence[object]) -> None:
        said.extend(len(value) for value in values if isinstance(value, str))
        tell(statement, values)

    monkeypatch.setattr(bulk, "tell_prepared", noted)
    monkeypatch.setattr(bulk, "_MOST_TOLD", 10_000)
    storing(lambda: record(project, *batch(200)))

    assert max(said) <= 10_000
    assert sum(said) > 150_000
    names = [f"call {number}" for number in range(200)]
    assert list(Call.objects.order_by("id").values_list("name", flat=True)) == names
    assert StoredMessage.objects.filter(project_id=project.id).count() == 200


def test_where_no_calls_are_stored_copy_is_for_fewer_rows() -> None:
    """Nothing is made there while the server inserts."""
    assert storing(lambda: [bulk.is_few(rows) for rows in (32, 33, 500, 501)]) == [
        True,
        True,
        True,
        False,
    ]
    assert [bulk.is_few(rows) for rows in (32, 33)] == [True, False]
