"""On PostgreSQL calls and what hangs on them are kept by months; rows that are there are moved.

In one transaction that keeps everybody else from the calls for as long as it copies them (not
timed at millions). SQLite keeps plain tables; there, too, what hangs on a call gets its project and
time.
"""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from helmdash.records.statements import partitions

_CALLS, _PAYLOADS = "records_call", "records_callpayload"


class KeepByMonths(Operation):
    """Make the two tables anew, each with its rows."""

    reversible = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """What hangs on a call has its project and time, and no constraint that leads to it."""
        for operation in _STATE:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """By the kind of database."""
        was = from_state.apps.get_model(app_label, "CallPayload")
        columns = ", ".join(field.column for field in was._meta.concrete_fields)
        fill = (
            f"INSERT INTO {_PAYLOADS} (project_id, started_at, {columns})"
            f" SELECT c.project_id, c.started_at, {columns}"
            f" FROM {_PAYLOADS}_old p JOIN {_CALLS} c ON c.id = p.call_id"
        )
        if schema_editor.connection.vendor == "postgresql":
            partition(schema_editor, fill, new=_NEW)
            return
        schema_editor.execute(f"ALTER TABLE {_PAYLOADS} RENAME TO {_PAYLOADS}_old")
        schema_editor.create_model(to_state.apps.get_model(app_label, "CallPayload"))
        schema_editor.execute(fill)
        schema_editor.execute(f"DROP TABLE {_PAYLOADS}_old")

    def describe(self) -> str:
        """For who watches the migration."""
        return "Keep calls by months"


_STATE: list[Any] = [
    migrations.AddField(
        model_name="callpayload",
        name="project",
        field=models.ForeignKey(
            db_index=False,
            on_delete=django.db.models.deletion.CASCADE,
            related_name="+",
            to="records.project",
        ),
        preserve_default=False,
    ),
    migrations.AddField(
        model_name="callpayload",
        name="started_at",
        field=models.DateTimeField(help_text="The call's: in which partition it is."),
        preserve_default=False,
    ),
    migrations.AlterField(
        model_name="callpayload",
        name="call",
        field=models.OneToOneField(
            db_constraint=False,
            on_delete=django.db.models.deletion.CASCADE,
            primary_key=True,
            related_name="payload",
            serialize=False,
            to="records.call",
        ),
    ),
]


_NEW = "project_id bigint NOT NULL, started_at timestamptz NOT NULL, "


def partition(schema_editor: Any, fill: str = "", *, new: str = "") -> None:
    """Keep the plain tables that are there by months.

    fill: what brings the payloads over. new: their columns that the plain table has not.
    """
    # What waits to be checked keeps a table from being altered.
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    schema_editor.execute(f"LOCK TABLE {_CALLS}, {_PAYLOADS} IN ACCESS EXCLUSIVE MODE")
    indexes = _ask(
        schema_editor,
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
        f" AND tablename = '{_CALLS}' AND indexname NOT IN ('{_CALLS}_pkey', 'call_by_time')",
    )
    keys = _ask(
        schema_editor,
        "SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,"
        " pg_get_constraintdef(oid)) FROM pg_constraint"
        f" WHERE contype = 'f' AND conrelid = '{_CALLS}'::regclass",
    )
    ((sequence,),) = _ask(schema_editor, f"SELECT pg_get_serial_sequence('{_CALLS}', 'id')")
    ((last, is_called),) = _ask(schema_editor, f"SELECT last_value, is_called FROM {sequence}")
    for name, _ in indexes:
        schema_editor.execute(f'DROP INDEX "{name}"')
    schema_editor.execute("DROP INDEX call_by_time")
    for table in (_CALLS, _PAYLOADS):
        schema_editor.execute(f"ALTER TABLE {table} RENAME TO {table}_old")
    like = "INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION"
    by_time = "PARTITION BY RANGE (started_at)"
    schema_editor.execute(f"CREATE TABLE {_CALLS} (LIKE {_CALLS}_old {like}) {by_time}")
    schema_editor.execute(f"CREATE TABLE {_PAYLOADS} ({new}LIKE {_PAYLOADS}_old {like}) {by_time}")
    times = _ask(
        schema_editor,
        "SELECT DISTINCT date_trunc('month', started_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"
        f" FROM {_CALLS}_old",
    )
    months = {partitions.month_of(at) for (at,) in times}
    ((now,),) = _ask(schema_editor, "SELECT now()")
    months.update(map(partitions.month_of, partitions.months_ahead(now)))
    for table in (_CALLS, _PAYLOADS):
        for statement in partitions.statements(months, tables=(table,)):
            schema_editor.execute(statement)
    columns = _columns(schema_editor)
    schema_editor.execute(f"INSERT INTO {_CALLS} ({columns}) SELECT {columns} FROM {_CALLS}_old")
    if fill:
        schema_editor.execute(fill)
    # Payloads first, which refer to calls.
    for table in (_PAYLOADS, _CALLS):
        schema_editor.execute(f"DROP TABLE {table}_old")
    for _, definition in indexes:
        schema_editor.execute(definition)
    schema_editor.execute(
        # The index of that name, which Django knows of, and the key of the rows in one.
        f"ALTER TABLE {_CALLS} ADD CONSTRAINT call_by_time PRIMARY KEY (project_id, started_at, id)"
    )
    schema_editor.execute(
        f"ALTER TABLE {_PAYLOADS} ADD PRIMARY KEY (project_id, started_at, call_id)"
    )
    # No key: for the newest of all, and for ids whose time is known only roughly.
    schema_editor.execute(f"CREATE INDEX call_by_id ON {_CALLS} (id)")
    schema_editor.execute(
        f"ALTER TABLE {_CALLS} ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY"
    )
    schema_editor.execute(
        f"SELECT setval(pg_get_serial_sequence('{_CALLS}', 'id'), {last}, {is_called})"
    )
    for (definition,) in keys:
        schema_editor.execute(definition)
    schema_editor.execute(
        f"ALTER TABLE {_PAYLOADS} ADD CONSTRAINT {_PAYLOADS}_project_id FOREIGN KEY (project_id)"
        " REFERENCES records_project (id) DEFERRABLE INITIALLY DEFERRED"
    )


def _columns(schema_editor: Any) -> str:
    found = _ask(
        schema_editor,
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
        f" WHERE attrelid = '{_CALLS}_old'::regclass AND attnum > 0 AND NOT attisdropped",
    )
    return str(found[0][0])


def _ask(schema_editor: Any, statement: str) -> list[Any]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0019_triage"),
    ]

    operations = [KeepByMonths()]
