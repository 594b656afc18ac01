"""Statements past Django's cursors do and say what its cursors do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError
from django.db.utils import ConnectionHandler
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.capture import Capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, Project
from helmdash.records.statements import bulk, column_values, direct
from helmdash.records.statements.direct import is_postgres
from tests.recording.support import record

TABLE = Project._meta.db_table


def test_a_statement_that_is_counted_gives_what_one_gives_that_is_not(
    project: ProjectInfo,
) -> None:
    statement, values = f"SELECT id, slug FROM {TABLE} WHERE slug <> %s ORDER BY id", ["nobody's"]
    found = direct.ask(statement, values)

    with CaptureQueriesContext(connection) as counted:
        assert direct.ask(statement, values) == found

    assert (project.id, project.slug) in [tuple(row) for row in found]
    assert len(counted) == 1


def test_a_row_that_is_there_is_an_error_of_djangos(project: ProjectInfo) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        direct.tell(f"INSERT INTO {TABLE} (id) VALUES (%s)", [project.id])


@pytest.mark.django_db
def test_nothing_is_asked_in_a_transaction_that_is_broken() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            direct.ask(f"SELECT id FROM {TABLE}", [])


@pytest.mark.django_db
@pytest.mark.skipif(is_postgres(), reason="inserts past Django's cursors are SQLite's")
def test_nothing_is_inserted_in_a_transaction_that_is_broken() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            bulk.insert_rows(Project, [{"slug": "new", "name": "New"}])


def test_recording_a_call_asks_for_its_connection_once_a_statement(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find a thread's connection costs as much as a small statement of SQLite does; Django's way
    asks for it twice."""
    for name in ("first", "second"):  # words the statements of a new conversation and of an old
        record(project, Capture(model="m", id=name, conversation="c"))
    asked: list[str] = []
    find = type(connections).__getitem__

    def count(self: ConnectionHandler, alias: str) -> BaseDatabaseWrapper:
        asked.append(alias)
        return find(self, alias)

    monkeypatch.setattr(type(connections), "__getitem__", count)
    record(project, Capture(model="m", id="third", conversation="c"))

    assert len(asked) <= (60 if is_postgres() else 30)


@pytest.mark.parametrize("count", [1, 100])
def test_numbers_are_taken_by_one_statement_that_knows_their_sequence(
    project: ProjectInfo, count: int
) -> None:
    """PostgreSQL would look the sequence up for each number, which takes five times as long."""
    bulk.allocate_ids(Call, 1)

    with CaptureQueriesContext(connection) as asked:
        numbers = bulk.allocate_ids(Call, count)

    assert len(set(numbers)) == count
    assert len(asked) == 1
    assert "pg_get_serial_sequence" not in asked[0]["sql"]


@pytest.mark.parametrize("is_alone", [True, False])
def test_rows_are_the_same_however_many_go_to_the_driver_at_once(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch, is_alone: bool
) -> None:
    monkeypatch.setattr(bulk, "_process", bulk._Process())
    if is_alone:
        bulk.store_alone()

    record(project, *(Capture(model="m", id=f"c{number}") for number in range(22)))

    found = Call.objects.order_by("id").values_list("name", flat=True)
    assert list(found) == [f"c{number}" for number in range(22)]


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 11, 24, 7, 5, 0, 120, tzinfo=UTC),
        datetime(2026, 11, 24, tzinfo=UTC),  # no microseconds
        datetime(2026, 11, 24, 7, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
@pytest.mark.skipif(is_postgres(), reason="PostgreSQL takes times as they are")
def test_a_time_is_written_as_django_writes_it(at: datetime) -> None:
    assert column_values._sqlite_time(at) == connection.ops.adapt_datetimefield_value(at)


@pytest.mark.parametrize(
    ("texts", "stored"),
    [
        (["plain", "größer"], ["plain", "größer"]),
        (["a\0b", "größer"], ["a\ufffdb", "größer"]),
        (["\ud83d", "\ude00"], ["\ufffd", "\ufffd"]),  # halves in two columns are no pair
    ],
)
def test_a_text_that_cannot_be_stored_is_found_among_the_others(
    texts: list[str], stored: list[str]
) -> None:
    rows = [{"name": texts[0], "slug": texts[1]}]
    _, converters = column_values.columns_of(Project, ("name", "slug"))

    assert column_values.values_of(rows, ("name", "slug"), converters) == [stored]
