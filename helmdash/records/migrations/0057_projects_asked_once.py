"""On PostgreSQL calls, and what hangs on them row by row, refer to their project by nothing but its
number.

A foreign key has the project looked up, and its row locked, for each call, each of its names, its
payload and each of its messages: a fifth of what the server does for a batch of calls. Every
transaction that stores calls notes them for the rollups (`records_uncountedcalls`), and that row has
a foreign key: the project is asked for once. SQLite keeps its plain tables, where that costs little.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction
from django.db.migrations.operations.base import Operation

from helmdash.records.alone import lock_alone

TABLES = (
    "records_call",
    "records_callpayload",
    "records_callname",
    "records_storedmessage",
)
_PROJECT = "records_project"


class AskForProjectsOnce(Operation):
    """See the module. Nothing changes for the models."""

    reversible = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """They know the plain tables."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """On PostgreSQL alone; beside others, unless all is made in one transaction (a restore)."""
        if schema_editor.connection.vendor == "postgresql":
            ask_for_projects_once(schema_editor)

    def describe(self) -> str:
        """For who watches the migration."""
        return "Ask for the project once where calls are stored"


def ask_for_projects_once(editor: Any) -> None:
    """Drop the foreign keys, table by table, each in a moment of its own; one that is gone already is
    left at that."""
    for table in TABLES:
        with editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conparentid = 0"
                " AND conrelid = %s::regclass AND confrelid = %s::regclass",
                [table, _PROJECT],
            )
            names = [name for (name,) in cursor.fetchall()]
        if not names:
            continue
        with transaction.atomic(using=editor.connection.alias):
            if not editor.connection.savepoint_ids:
                lock_alone(editor.connection, table, _PROJECT)
            for name in names:
                editor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"', None)


class Migration(migrations.Migration):
    # Each table by itself: nobody is to wait for all of them.
    atomic = False

    dependencies = [
        ("records", "0056_keys_by_project"),
    ]

    operations = [AskForProjectsOnce()]
