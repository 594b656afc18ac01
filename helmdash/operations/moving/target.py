"""The PostgreSQL database of a move: made, filled table by table, and marked until all is there.

The mark is a table (`helmdash.places` refuses a database that has it): whose rows these are, and
how far each table has come, in the transactions that bring the rows. Foreign keys are taken off
meanwhile, since tables come in no order that suits them all, and checked when they are put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from helmdash.operations.moving.source import HISTORY
from helmdash.places import UNFINISHED_MOVE
from helmdash.records.statements import partitions

_BEGUN = "begun"
_FOREIGN_KEYS = "foreign keys"
_MADE = "made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Of which file a move was begun, as it was then, and with which tables."""

    state: str
    migrations: str


class Target:
    """A PostgreSQL database that is being filled. Each method is a transaction of its own."""

    def __init__(self, handle: psycopg.Connection[Any]) -> None:
        self._handle = handle

    def tables(self) -> set[str]:
        """All tables of the schema that names without one lead to."""
        found = self._handle.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        )
        return {str(row[0]) for row in found}

    def mark(self) -> Mark | None:
        """What was begun here; None where nothing was."""
        if UNFINISHED_MOVE not in self.tables():
            return None
        found = self._note(_BEGUN)
        state, _, migrations = (found or "").partition("\n")
        return Mark(state=state, migrations=migrations)

    def make_mark(self) -> None:
        """Say that a move is under way, before there is anything else."""
        self._handle.execute(
            sql.SQL(
                "CREATE TABLE {} (name text PRIMARY KEY, note text, reached bigint, rows bigint)"
            ).format(sql.Identifier(UNFINISHED_MOVE))
        )

    def are_made(self) -> bool:
        """Whether a try has made all tables."""
        return self._note(_MADE) is not None

    def note_made(self) -> None:
        """Say that all tables are made."""
        self._put_note(_MADE, "")

    def migrations(self) -> str:
        """The migrations that made these tables, as one text; "" where there are none."""
        if HISTORY not in self.tables():
            return ""
        found = self._handle.execute(f"SELECT app, name FROM {HISTORY}").fetchall()
        return "\n".join(sorted(f"{app}.{name}" for app, name in found))

    def begin(self, mark: Mark, tables: Iterable[str]) -> None:
        """Empty the tables, take their foreign keys off, and note whose rows come now."""
        with self._handle.transaction():
            if self._note(_FOREIGN_KEYS) is None:
                keys = self._take_foreign_keys_off()
                self._put_note(_FOREIGN_KEYS, "\n".join(keys))
            names = sql.SQL(", ").join(map(sql.Identifier, sorted(tables)))
            self._handle.execute(sql.SQL("TRUNCATE {}").format(names))
            self._handle.execute(
                sql.SQL("DELETE FROM {} WHERE note IS NULL").format(sql.Identifier(UNFINISHED_MOVE))
            )
            self._put_note(_BEGUN, f"{mark.state}\n{mark.migrations}")

    def make_months(self, months: Iterable[partitions.Month]) -> None:
        """Make the partitions of calls that are not there yet."""
        there = self.tables()
        table = partitions.TABLES[0]
        missing = [each for each in months if partitions.partition_of(table, each) not in there]
        with self._handle.transaction():
            for statement in partitions.statements(missing):
                self._handle.execute(statement.encode())

    def types(self, table: str) -> Mapping[str, str]:
        """The columns that are written to, each with its type."""
        found = self._handle.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attgenerated = '' ORDER BY attnum",
            [table],
        )
        return {str(name): str(kind) for name, kind in found}

    def reached(self, table: str) -> tuple[int, int]:
        """The number of the last row that is here, and how many there are; zeros before the
        first."""
        found = self._handle.execute(
            sql.SQL("SELECT reached, rows FROM {} WHERE name = %s").format(
                sql.Identifier(UNFINISHED_MOVE)
            ),
            [table],
        ).fetchone()
        return (int(found[0]), int(found[1])) if found else (0, 0)

    def put(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, reached: int
    ) -> None:
        """Add rows, and note the number of the last one."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
        with self._handle.transaction():
            cursor = self._handle.cursor()
            with cursor.copy(into) as copy:
                for row in rows:
                    copy.write_row(row)
            self._handle.execute(
                sql.SQL(
                    "INSERT INTO {0} AS mark (name, reached, rows) VALUES (%s, %s, %s)"
                    " ON CONFLICT (name) DO UPDATE"
                    " SET reached = excluded.reached, rows = mark.rows + excluded.rows"
                ).format(sql.Identifier(UNFINISHED_MOVE)),
                [table, reached, cursor.rowcount],
            )

    def count(self, table: str) -> int:
        """How many rows a table has."""
        found = self._handle.execute(
            sql.SQL("SELECT COUNT(*) FROM {}").format(sql.Identifier(table))
        ).fetchone()
        return int(found[0]) if found else 0

    def finish(self, sequences: Mapping[str, int]) -> None:
        """Put the foreign keys back, go on counting where the file stopped, take the mark away.

        sequences: the last id that each table gave. Raises psycopg.IntegrityError where a row
        refers to none.
        """
        with self._handle.transaction():
            for table, last in sequences.items():
                self._go_on_counting(table, last)
            for statement in (self._note(_FOREIGN_KEYS) or "").splitlines():
                self._handle.execute(statement.encode())
            self._handle.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(UNFINISHED_MOVE)))
        self._handle.execute("ANALYZE")

    def _go_on_counting(self, table: str, last: int) -> None:
        columns = self._handle.execute(
            "SELECT pg_get_serial_sequence(quote_ident(%s), attname) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [table, table],
        ).fetchall()
        for name in (row[0] for row in columns if row[0]):
            self._handle.execute("SELECT setval(%s, %s)", [name, last])

    def _take_foreign_keys_off(self) -> list[str]:
        """Gives the statements that put them back."""
        found = self._handle.execute(
            "SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', c.relname, k.conname),"
            " format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname,"
            " pg_get_constraintdef(k.oid))"
            " FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid"
            " WHERE k.contype = 'f' AND k.conparentid = 0"
            " AND k.connamespace = current_schema()::regnamespace ORDER BY 2"
        ).fetchall()
        for off, _ in found:
            self._handle.execute(off.encode())
        return [str(on) for _, on in found]

    def _note(self, name: str) -> str | None:
        found = self._handle.execute(
            sql.SQL("SELECT note FROM {} WHERE name = %s").format(sql.Identifier(UNFINISHED_MOVE)),
            [name],
        ).fetchone()
        return str(found[0]) if found else None

    def _put_note(self, name: str, note: str) -> None:
        self._handle.execute(
            sql.SQL(
                "INSERT INTO {} (name, note) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET note = excluded.note"
            ).format(sql.Identifier(UNFINISHED_MOVE)),
            [name, note],
        )
