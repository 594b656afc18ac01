"""A new database's tables are made at once; the migrations come to the same ones."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from helmdash.operations.database.fresh import make_tables
from tests.support import environment
from tests.support.postgres import create_database, drop_database
from tests.support.processes import run_python

# Django's own command; `manage.py migrate` is ours. It makes models anew some hundred times, and
# each of their fields from the words that would be written into a migration. A copy, as a model's
# fields are taken from an abstract one, is the same field; the command takes 9 s of CPU, not 13.
_STEP_BY_STEP = """
import copy
import django
from django.db.models import Field
def copied(field):
    copy_of_it = copy.deepcopy(field)
    copy_of_it.creation_counter = Field.creation_counter
    Field.creation_counter += 1
    return copy_of_it
Field.clone = copied
django.setup()
from django.core.management import call_command
from django.core.management.commands import migrate
call_command(migrate.Command(), interactive=False, verbosity=0)
"""

_ON_POSTGRESQL = """
SELECT c.relname, c.relkind, pg_get_partkeydef(c.oid) FROM pg_class c
WHERE {ours} AND c.relkind IN ('r', 'p', 'i', 'I', 'S');

SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage,
a.attidentity, a.attcompression, l.collname, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE {ours} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped;

-- PostgreSQL 18 makes constraints of columns that are not null, with the first table's name. What
-- all rows are known to keep a migration does not have the database read again (NOT VALID).
SELECT c.relname, k.conname, replace(pg_get_constraintdef(k.oid), ' NOT VALID', '')
FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid WHERE {ours} AND k.contype <> 'n';

SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class c WHERE {ours} AND c.relkind IN ('i', 'I');

SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
"""
# Months are made as time goes on.
_OURS = "c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition"


@pytest.mark.slow
@pytest.mark.django_db
def test_the_migrations_come_to_the_same_tables(tmp_path: Path) -> None:
    with _another_database(tmp_path) as ask, connection.cursor() as cursor:
        stepwise, at_once = _described(ask), _described(lambda sql: _asked(cursor, sql))

    assert len(at_once) > 300
    assert sorted(at_once - stepwise) == sorted(stepwise - at_once) == []


@pytest.mark.django_db
def test_tables_that_are_there_are_left_to_the_migrations() -> None:
    before = set(connection.introspection.table_names())

    assert make_tables() is False
    assert set(connection.introspection.table_names()) == before


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's keys are as they were")
def test_keys_are_changed_within_a_transaction_too() -> None:
    """As a restore does, which makes the tables of an archive by their migrations, all or none."""
    migration = import_module("helmdash.records.migrations.0056_keys_by_project")
    index = "records_round_by_number"
    with connection.schema_editor() as editor:
        editor.execute(f"DROP INDEX {index}")

        migration.KeyByProject().database_forwards("records", editor, None, None)

    with connection.cursor() as cursor:
        assert index in connection.introspection.get_constraints(cursor, "records_round")


@contextmanager
def _another_database(tmp_path: Path) -> Iterator[Any]:
    """A database with the tables of the migrations, each in its turn: a function that asks it."""
    given = {
        **environment.clean(),
        "DJANGO_SETTINGS_MODULE": "helmdash.settings",
        "HELMDASH_DATA_DIR": str(tmp_path),
    }
    if connection.vendor == "sqlite":
        _migrate(given)
        with closing(sqlite3.connect(tmp_path / "helmdash.sqlite3")) as handle:
            yield lambda sql: handle.execute(sql).fetchall()
        return
    server = os.environ["DATABASE_URL"]
    url = create_database(server, f"stepwise_{uuid4().hex}")
    try:
        _migrate({**given, "DATABASE_URL": url})
        with psycopg.connect(url) as other:
            yield lambda sql: other.execute(sql.encode()).fetchall()
    finally:
        drop_database(url)


def _migrate(given: dict[str, str]) -> None:
    done = run_python("-c", _STEP_BY_STEP, env=given, timeout=120)
    assert done.returncode == 0, done.stderr


def _asked(cursor: Any, sql: str) -> list[Any]:
    cursor.execute(sql)
    return list(cursor.fetchall())


def _described(ask: Any) -> set[tuple[str, ...]]:
    """All that a schema is, but for the order of columns, and which migrations it has had."""
    found = {tuple(map(str, row)) for row in ask("SELECT app, name FROM django_migrations")}
    if connection.vendor == "postgresql":
        for sql in _ON_POSTGRESQL.format(ours=_OURS).split(";"):
            found |= {tuple(map(str, row)) for row in ask(sql)}
        return found
    for name, made in ask("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
        inside = made.partition("(")[2].rpartition(")")[0] if "CREATE TABLE" in made else made
        found |= {(name, part) for part in _parts(inside)}
    return found


def _parts(inside: str) -> Iterator[str]:
    """What commas divide, but not those in parentheses."""
    depth, part = 0, ""
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()
