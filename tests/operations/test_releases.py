"""Releases of the tables: each adds only what code of the release before need not know."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.db import connection, migrations, models
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

# Tables that grow with the calls: who alters one of them as a whole holds up all hosts meanwhile.
_BIG = {
    *("call", "callname", "callpayload", "conversation", "conversationmark", "storedmessage"),
    *("round", "healthchange", "fit", "planrecord", "planstep", "planattempt", "rollup"),
}
_AS_A_WHOLE = (
    migrations.AlterField,
    migrations.AddIndex,
    migrations.AddConstraint,
    migrations.AlterUniqueTogether,
    migrations.RunSQL,
    migrations.RunPython,
    migrations.SeparateDatabaseAndState,
)
_IN_PASSING = (AddIndexConcurrently, AddConstraintNotValid)


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


def holds_up(operation: Any) -> bool:
    """Whether an operation may rewrite a big table, or read the whole of it under its lock.

    What runs by itself (RunSQL, RunPython) is not to be seen through: it has no place in a release
    that hosts take one after the other. A new table has nobody waiting for it.
    """
    table = getattr(operation, "model_name_lower", None)
    if table is not None and table not in _BIG:
        return False
    if isinstance(operation, migrations.AddField):
        # Constant defaults are noted beside the table; a key or an index is built from its rows.
        field: Any = operation.field
        return bool(field.db_index or field.unique)
    return isinstance(operation, _AS_A_WHOLE) and not isinstance(operation, _IN_PASSING)


_INDEX = models.Index(fields=["project", "id"], name="later")
_CHECK = models.CheckConstraint(condition=models.Q(id__gt=0), name="positive")
# operation, whether it holds up who records
OPERATIONS: list[tuple[Any, bool]] = [
    (migrations.AddField("call", "later", models.TextField(null=True)), False),
    (migrations.AddField("call", "later", models.IntegerField(db_default=0)), False),
    (migrations.AddField("call", "later", models.IntegerField(null=True, db_index=True)), True),
    (migrations.AddField("knock", "later", models.IntegerField(null=True, db_index=True)), False),
    (migrations.AlterField("call", "model", models.TextField()), True),
    (migrations.AddIndex("call", _INDEX), True),
    (migrations.AddIndex("knock", _INDEX), False),
    (AddIndexConcurrently("call", _INDEX), False),
    (migrations.AddConstraint("call", _CHECK), True),
    (AddConstraintNotValid("call", _CHECK), False),
    (migrations.CreateModel("Later", [("id", models.BigAutoField(primary_key=True))]), False),
    (migrations.RunSQL("UPDATE records_call SET model = ''"), True),
    (migrations.RunPython(migrations.RunPython.noop), True),
]


@pytest.mark.parametrize(("operation", "is_held_up"), OPERATIONS)
def test_what_holds_up_other_hosts_is_known(operation: Any, is_held_up: bool) -> None:
    assert holds_up(operation) is is_held_up


def test_hosts_can_take_a_release_one_after_the_other() -> None:
    """Of releases since the oldest code that still works: those before it were taken at once."""
    disk = MigrationLoader(None).disk_migrations or {}
    last = _LAST.get(places.OLDEST_CODE)
    names = [name for app, name in disk if app == "records" and last is not None and name > last]

    assert [
        (name, type(each).__name__)
        for name in sorted(names)
        for each in disk["records", name].operations
        if holds_up(each)
    ] == []


@pytest.mark.django_db(transaction=True)
def test_a_migration_in_steps_goes_on_where_it_broke_off() -> None:
    """What it did stays when it is killed before that is noted: it is begun once more. One that
    cannot be taken back is done once more on tables that it has changed."""
    loader = MigrationLoader(None)
    disk = loader.disk_migrations or {}
    in_steps = sorted(key for key, each in disk.items() if key[0] == "records" and not each.atomic)
    before = indexes_of_conversations()

    assert in_steps
    for key in in_steps:
        migration: Any = disk[key]
        steps = migration.operations
        for cut in range(1, len(steps) + 1):
            if all(each.reversible for each in steps):
                with connection.schema_editor(atomic=False) as editor:
                    migration.unapply(loader.project_state(key, at_end=False), editor)
            for done in (steps[:cut], steps):
                migration.operations = done
                with connection.schema_editor(atomic=False) as editor:
                    migration.apply(loader.project_state(key, at_end=False), editor)

            assert indexes_of_conversations() == before, (key, cut)


def indexes_of_conversations() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "records_conversation"))


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
