"""On PostgreSQL each key of what grows with calls begins with the project.

So that these tables can be distributed by it (docs/scaling.md). What is long is done beside those
who read and write: indexes are built aside, and foreign keys are read after they hold for new rows.
What keeps others away is a look at the catalog; where somebody is in its way it lets them pass and
tries again. A migration that broke off goes on where it was. SQLite keeps its plain tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import migrations, transaction
from django.db.migrations.operations.base import Operation

from helmdash.records.alone import lock_alone

_NUMBER = "id"
# Each table, and whether rows are looked for by their number alone, too: an index is left for it.
NUMBERED = {
    "records_conversation": True,
    "records_planrecord": True,
    "records_round": True,
    "records_conversationmark": False,
    "records_healthchange": True,
    "records_guidance": True,
    "records_reminder": True,
    "records_triageword": True,
    "records_clientevent": True,
    "records_planstep": True,
    "records_planattempt": True,
    "records_plancatalog": True,
    "records_fit": True,
    "records_storedmessage": False,
    "records_rollup": False,
    "records_uncountedcalls": True,
    "records_trialcall": True,
    "records_pendingprompt": True,
    "records_pendingexport": True,
    "records_awaitedspan": True,
}
_OTHER_NUMBERS = {"records_trialcall": "call_number"}
# An index that Django knows of and that is the same as the new key takes its place.
_SAME_AS_KEY = {"records_uncountedcalls": "uncounted_by_project"}
# Constraints whose columns come in another order than the models': the project first. Who looks for
# rows by the second column alone (code of before, Django where it deletes) has an index for that.
UNIQUE = {
    "round_number": ("records_round", ("project_id", "conversation_id", "number")),
    "guidance_generation": ("records_guidance", ("project_id", "conversation_id", "generation")),
    "health_change_generation": (
        "records_healthchange",
        ("project_id", "conversation_id", "generation"),
    ),
    "reminder_name": ("records_reminder", ("project_id", "conversation_id", "name")),
    "client_event_once": ("records_clientevent", ("project_id", "conversation_id", "key")),
    "plan_step_place": ("records_planstep", ("project_id", "plan_id", "position")),
    "plan_attempt_place": ("records_planattempt", ("project_id", "plan_id", "number")),
}
# Who refers to a row of the same project, by which column.
REFERENCES = {
    "records_conversation": (
        "conversation_id",
        (
            "records_round",
            "records_conversationmark",
            "records_healthchange",
            "records_guidance",
            "records_reminder",
            "records_triageword",
            "records_clientevent",
        ),
    ),
    "records_planrecord": ("plan_id", ("records_planstep", "records_planattempt")),
}


class KeyByProject(Operation):
    """See the module. Nothing changes for the models."""

    reversible = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """They know the plain tables."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """On PostgreSQL alone; beside others, unless all is made in one transaction (a restore)."""
        connection = schema_editor.connection
        if connection.vendor == "postgresql":
            key_by_project(schema_editor, aside=not connection.in_atomic_block)

    def describe(self) -> str:
        """For who watches the migration."""
        return "Have every key begin with the project"


def key_by_project(editor: Any, *, aside: bool) -> None:
    """Change the keys. aside: while others use the tables, and outside a transaction; else at once,
    in the caller's."""
    tables = _Tables(editor, aside=aside)
    # Those that refer to others last: their keys are put back with the ones they refer to.
    for table in NUMBERED:
        tables.build(table)
    for name, (table, columns) in UNIQUE.items():
        tables.reorder(name, table, columns)
    for table in NUMBERED:
        tables.change_key(table)
    for table in REFERENCES:
        tables.read_references(table)


class _Tables:
    """The steps for one table or constraint; each looks whether it was done before."""

    def __init__(self, editor: Any, *, aside: bool) -> None:
        self._editor = editor
        self._aside = aside

    def build(self, table: str) -> None:
        """The index of the new key, and the one by the number alone."""
        number = _number_of(table)
        if not self._is_by_project(table):
            self._index(f"{table}_by_project", table, ("project_id", number), unique=True)
        if NUMBERED[table]:
            self._index(f"{table}_by_number", table, (number,))

    def reorder(self, name: str, table: str, columns: tuple[str, ...]) -> None:
        """Have a unique constraint begin with the project."""
        if self._columns_of(name)[:1] == ["project_id"]:
            return
        self._index(f"{name}_new", table, columns, unique=True)
        self._index(f"{table}_by_{columns[1].removesuffix('_id')}", table, columns[1:2])
        with self._alone(table):
            self._tell(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            self._tell(f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}_new")

    def change_key(self, table: str) -> None:
        """Put the new key in the place of the old one, and have others refer to it by both columns:
        for new rows at once, those that are there are read after it."""
        if self._is_by_project(table):
            return
        column, children = REFERENCES.get(table, ("", ()))
        same = _SAME_AS_KEY.get(table)
        with self._alone(table, *children):
            for child in children:
                self._drop_reference(child, table)
            self._tell(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
            if same is not None:
                self._tell(f"DROP INDEX {same}")
            self._tell(
                f"ALTER TABLE {table} ADD CONSTRAINT {same or f'{table}_pkey'}"
                f" PRIMARY KEY USING INDEX {table}_by_project"
            )
            for child in children:
                self._tell(
                    f"ALTER TABLE {child} ADD CONSTRAINT {child}_{column}"
                    f" FOREIGN KEY (project_id, {column}) REFERENCES {table} (project_id, id)"
                    f" DEFERRABLE INITIALLY DEFERRED{' NOT VALID' if self._aside else ''}"
                )

    def read_references(self, table: str) -> None:
        """Have the database see that rows of before keep to it; others go on meanwhile."""
        column, children = REFERENCES[table]
        for child in children if self._aside else ():
            self._tell(f"ALTER TABLE {child} VALIDATE CONSTRAINT {child}_{column}")

    def _index(
        self, name: str, table: str, columns: tuple[str, ...], *, unique: bool = False
    ) -> None:
        beside = " CONCURRENTLY" if self._aside else ""
        # One that broke off is there, and not valid.
        found = self._ask(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", name
        )
        if found == [(True,)]:
            return
        if found:
            self._tell(f"DROP INDEX{beside} {name}")
        kind = "UNIQUE INDEX" if unique else "INDEX"
        self._tell(f"CREATE {kind}{beside} {name} ON {table} ({', '.join(columns)})")

    def _drop_reference(self, child: str, table: str) -> None:
        names = self._ask(
            "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = %s::regclass"
            " AND confrelid = %s::regclass",
            child,
            table,
        )
        for (name,) in names:
            self._tell(f'ALTER TABLE {child} DROP CONSTRAINT "{name}"')

    def _is_by_project(self, table: str) -> bool:
        key = _SAME_AS_KEY.get(table)
        by = self._ask("SELECT 1 FROM pg_constraint WHERE contype = 'p' AND conname = %s", key)
        return bool(by) if key else self._columns_of(f"{table}_pkey")[:1] == ["project_id"]

    def _columns_of(self, constraint: str) -> list[str]:
        found = self._ask(
            "SELECT array_agg(a.attname::text ORDER BY k.place) FROM pg_constraint c"
            " CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(attnum, place)"
            " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum"
            " WHERE c.conname = %s AND c.connamespace = current_schema()::regnamespace",
            constraint,
        )
        return found[0][0] or []

    @contextmanager
    def _alone(self, *tables: str) -> Iterator[None]:
        """Nobody else uses the tables; who does is waited for, without those behind waiting long."""
        if not self._aside:
            yield
            return
        with transaction.atomic(using=self._editor.connection.alias):
            lock_alone(self._editor.connection, *tables)
            yield

    def _tell(self, statement: str) -> None:
        self._editor.execute(statement, None)

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        with self._editor.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


def _number_of(table: str) -> str:
    return _OTHER_NUMBERS.get(table, _NUMBER)


class Migration(migrations.Migration):
    # Indexes are built beside who uses the tables.
    atomic = False

    dependencies = [
        ("records", "0055_fits_and_plans_of_conversations"),
    ]

    operations = [KeyByProject()]
