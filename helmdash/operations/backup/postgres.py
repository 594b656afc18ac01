"""PostgreSQL in a backup: every table by COPY, all of them as they were at one moment.

No program of PostgreSQL's is needed. The text form of COPY is the same in every version, so that a
backup also moves to a newer server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader

from helmdash.operations.backup.archive import Progress, Table
from helmdash.operations.database.fresh import make_tables
from helmdash.records.statements import partitions

_HISTORY = "django_migrations"
_NAMES = "records_callname"
# A server asks something each second, also where nobody asks it. A pooler keeps connections of
# servers that have ended, and PostgreSQL those of a host that lost power.
_LIVELY = "10 seconds"
# Somebody else who works on the tables keeps a restore from beginning; it says so after this.
_LOCK_WAIT = "10s"


@contextmanager
def one_moment() -> Iterator[None]:
    """A block in which every read sees the database as it was at one moment."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def tables() -> dict[str, Table]:
    """Our tables with their columns and rows; those of a newer release included."""
    known = set(connection.introspection.django_table_names(only_existing=True)) | {_HISTORY}
    names = connection.introspection.table_names()
    return {name: _table(name) for name in sorted(names) if name in known or _is_ours(name)}


def copy_out(name: str, table: Table, write: Callable[[bytes], None]) -> int:
    """Give a table's rows to `write`, as COPY writes them; gives how many there are."""
    with connection.cursor() as cursor:
        # A table of partitions has no rows of its own that it could be copied by.
        rows = f"SELECT {_columns(table)} FROM {_quoted(name)}"
        with cursor.copy(f"COPY ({rows}) TO STDOUT") as copy:
            for piece in copy:
                write(bytes(piece))
        return int(cursor.rowcount)


def applied_migrations() -> Mapping[str, tuple[str, ...]]:
    """The migrations that made these tables, by app."""
    found: dict[str, list[str]] = {}
    for app, name in _ask(f"SELECT app, name FROM {_HISTORY} ORDER BY id"):
        found.setdefault(app, []).append(name)
    return {app: tuple(names) for app, names in found.items()}


def has_data() -> bool:
    """Whether any of our tables is there and has a project or a person in it."""
    names = set(connection.introspection.table_names())
    telling = [name for name in ("records_project", "auth_user") if name in names]
    return any(_ask(f"SELECT 1 FROM {name} LIMIT 1") for name in telling)


def others_at_work() -> tuple[str, ...]:
    """From which hosts other processes of HelmDash work on this database, as PostgreSQL knows them:
    "" for its own."""
    rows = _ask(
        "SELECT DISTINCT COALESCE(host(client_addr), '') FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND application_name = current_setting('application_name')"
        # Nothing yet: stands ready in a pool, perhaps this process's own.
        " AND query <> ''"
        f" AND (state <> 'idle' OR state_change > clock_timestamp() - interval '{_LIVELY}')"
    )
    return tuple(sorted(host for (host,) in rows))


def put_back(
    migrations: Mapping[str, Sequence[str]],
    told: Mapping[str, Table],
    rows_of: Callable[[str], Iterable[bytes]],
    progress: Progress,
) -> None:
    """Put rows into the tables that these migrations make, which take the place of others.

    In one transaction, tables included. Raises what the database raises, and ValueError where rows
    are missing; then what was there is there as it was.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
        _make_tables(migrations, progress)
        # Looked at when all are filled: tables come in no order.
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        _fill(cursor, told, rows_of, progress)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _make_tables(migrations: Mapping[str, Sequence[str]], progress: Progress) -> None:
    """Make the tables that these migrations make, unless they are there."""
    names = set(connection.introspection.table_names())
    if _HISTORY in names and _same(applied_migrations(), migrations):
        return
    progress("making the tables")
    with connection.cursor() as cursor:
        for name in [name for name in tables() if name in names] if names else []:
            cursor.execute(f"DROP TABLE {_quoted(name)} CASCADE")
        if _are_all(migrations) and make_tables():
            return
        for app, name in _leaves(migrations):
            call_command("migrate", app, name, interactive=False, verbosity=0)
            # A table with rows whose keys were not looked at yet can be altered by no migration.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _fill(
    cursor: Any,
    told: Mapping[str, Table],
    rows_of: Callable[[str], Iterable[bytes]],
    progress: Progress,
) -> None:
    # Names of calls come first: they tell for which months there have to be partitions.
    names = sorted((name for name in told if name != _HISTORY), key=lambda name: name != _NAMES)
    partitions.forget()
    is_partitioned = bool(partitions.existing())
    cursor.execute(f"TRUNCATE {', '.join(map(_quoted, names))} CASCADE")
    for name in names:
        table = told[name]
        progress(f"putting back {name}, {table.rows} rows")
        with cursor.copy(f"COPY {_quoted(name)} ({_columns(table)}) FROM STDIN") as copy:
            for piece in rows_of(name):
                copy.write(piece)
        if cursor.rowcount != table.rows:
            raise ValueError(f"{name} has {cursor.rowcount} rows instead of {table.rows}")
        if name == _NAMES and is_partitioned:
            cursor.execute(f"SELECT DISTINCT date_trunc('month', started_at, 'UTC') FROM {name}")
            partitions.provide([at for (at,) in cursor.fetchall()])
        if table.sequence is not None:
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [name, table.sequence]
            )


def _are_all(migrations: Mapping[str, Sequence[str]]) -> bool:
    """Whether these are the migrations of this very release."""
    told = {(app, name) for app, names in migrations.items() for name in names}
    return told == set(MigrationLoader(None).disk_migrations or ())


def unknown_migrations(migrations: Mapping[str, Sequence[str]]) -> list[str]:
    """Those that this code does not have."""
    known = MigrationLoader(None).disk_migrations or {}
    return [
        f"{app}.{name}"
        for app, names in migrations.items()
        for name in names
        if (app, name) not in known
    ]


def _leaves(migrations: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The last migration of each app: the one that no other of them stands on."""
    graph = MigrationLoader(None).graph
    applied = {(app, name) for app, names in migrations.items() for name in names}

    def has_next(node: tuple[str, str]) -> bool:
        followers = {child.key for child in graph.node_map[node].children}
        return any(key[0] == node[0] for key in followers & applied)

    return [node for node in sorted(applied & graph.nodes.keys()) if not has_next(node)]


def _table(name: str) -> Table:
    columns = _ask(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [name],
    )
    return Table(columns=tuple(row[0] for row in columns), rows=0, sequence=_sequence(name))


def _sequence(name: str) -> int | None:
    """The last id that a table gave; None where it gives none, or gave none yet."""
    has_id = _ask(
        "SELECT 1 FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'id'"
        " AND NOT attisdropped",
        [name],
    )
    found = _ask("SELECT pg_get_serial_sequence(%s, 'id')", [name]) if has_id else []
    if not found or found[0][0] is None:
        return None
    last, is_called = _ask(f"SELECT last_value, is_called FROM {found[0][0]}")[0]
    return int(last) if is_called else None


def _same(one: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]) -> bool:
    return {app: set(names) for app, names in one.items()} == {
        app: set(names) for app, names in other.items()
    }


def _is_ours(name: str) -> bool:
    return name.startswith("records_")


def _columns(table: Table) -> str:
    return ", ".join(map(_quoted, table.columns))


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def _ask(statement: str, values: Sequence[str] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        return list(cursor.fetchall())
