"""Calls that come while their project is deleted. Their own tables have no foreign key to it on
PostgreSQL: what notes them for the rollups has."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.loader import MigrationLoader

from helmdash.core.calls.capture import Capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, UncountedCalls
from tests.factories import make_capture
from tests.recording.support import make_ruled_project, reading, record, somebody_else

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer"),
]

_TABLES = ("records_call", "records_callname", "records_callpayload", "records_storedmessage")
_MESSAGES = ({"role": "user", "content": "hello"},)
_CALLS = {
    "of no conversation": make_capture(id="a", messages=_MESSAGES),
    "of a conversation": make_capture(id="a", conversation="talk", messages=_MESSAGES),
}


@pytest.fixture
def passing() -> ProjectInfo:
    """A project that nobody needs."""
    return make_ruled_project(slug="passing", name="Passing", payload="full")


def keys_to_projects() -> set[str]:
    """Which of the tables have a foreign key to projects."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND confrelid = 'records_project'::regclass AND conparentid = 0"
        )
        return {name for (name,) in cursor.fetchall()}


def test_nothing_that_comes_with_each_call_asks_for_its_project() -> None:
    assert keys_to_projects().isdisjoint(_TABLES)
    assert UncountedCalls._meta.db_table in keys_to_projects()


def delete(project: ProjectInfo) -> None:
    """As another process does, with one commit."""
    with somebody_else() as other:
        other.execute("DELETE FROM records_project WHERE id = %s", [project.id])
        other.commit()


def record_while_it_is_deleted(project: ProjectInfo, capture: Capture) -> None:
    with transaction.atomic():
        record(project, capture)
        delete(project)


@pytest.mark.parametrize("capture", _CALLS.values(), ids=[*_CALLS])
def test_a_call_whose_project_is_deleted_before_its_commit_is_refused(
    passing: ProjectInfo, capture: Capture
) -> None:
    with pytest.raises(IntegrityError):
        record_while_it_is_deleted(passing, capture)

    assert not Call.objects.exists()


def test_a_project_is_kept_where_a_call_of_it_was_committed_meanwhile(
    passing: ProjectInfo,
) -> None:
    record(passing, make_capture(id="a"))

    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        delete(passing)
    assert Call.objects.filter(project_id=passing.id).count() == 1


def test_keys_of_before_are_dropped_while_others_read(passing: ProjectInfo) -> None:
    record(passing, _CALLS["of a conversation"])
    migration: Any = MigrationLoader(None).disk_migrations["records", "0057_projects_asked_once"]
    (change,) = migration.operations
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(
                f"ALTER TABLE {table} ADD FOREIGN KEY (project_id) REFERENCES records_project (id)"
                " DEFERRABLE INITIALLY DEFERRED"
            )
    assert keys_to_projects().issuperset(_TABLES)

    with reading("records_call", seconds=1.5), connection.schema_editor(atomic=False) as editor:
        change.database_forwards("records", editor, None, None)

    assert keys_to_projects().isdisjoint(_TABLES)
