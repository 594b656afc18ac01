"""Releases of the tables: each adds only what code of the release before need not know."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader

from helmdash import places
from helmdash.queries.conversations import conversations
from helmdash.records.models import RecorderLedger
from tests.factories import NOW, make_capture, make_project, record

# The last migration of each release. Release 0 counted none.
_LAST = {0: "0004_care", 1: "0013_rollups"}
_TAKES_AWAY = (
    migrations.DeleteModel,
    migrations.RemoveField,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)


def ours() -> list[tuple[str, Any]]:
    """The operations of each migration of a release that older code is to go on with, in order."""
    disk = MigrationLoader(None).disk_migrations or {}
    assert len(_LAST) == places.SCHEMA_RELEASE, "add the last migration of the release before"
    # With 2 calls went into partitions, and their ids into a table of their own (ADR 33).
    assert places.OLDEST_CODE == 2
    names = sorted(name for app, name in disk if app == "records" and _LAST[0] < name <= _LAST[1])
    return [(name, each) for name in names for each in disk["records", name].operations]


def test_a_release_takes_nothing_away() -> None:
    assert [name for name, each in ours() if isinstance(each, _TAKES_AWAY)] == []


def test_code_of_the_release_before_can_write_every_row() -> None:
    """A column of a table that it knows is null, or has a default of the database's."""
    fresh = {each.name_lower for _, each in ours() if isinstance(each, migrations.CreateModel)}
    added = [
        apps.get_model("records", each.model_name)._meta.get_field(each.name)
        for _, each in ours()
        if isinstance(each, migrations.AddField) and each.model_name_lower not in fresh
    ]

    assert added
    assert [str(each) for each in added if not each.null and not each.has_db_default()] == []


@pytest.mark.django_db
def test_this_code_writes_into_tables_of_the_next_release() -> None:
    project = make_project()
    with connection.cursor() as cursor:
        for table in ("records_call", "records_conversation", "records_recorderledger"):
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN later varchar(20) NULL")
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN least integer NOT NULL DEFAULT 0")
        cursor.execute("CREATE TABLE records_later (id integer PRIMARY KEY)")
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('records', '9999_later', '2027-01-01 00:00:00')"
        )

    record(make_capture(id="a"))
    RecorderLedger.objects.create(name="p", started_at=NOW, seen_at=NOW)

    assert conversations.find(project_id=project.id, conversation_id="talk") is not None
