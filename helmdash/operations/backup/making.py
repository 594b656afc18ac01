"""Making a backup: the spool first, then one moment of the database, then the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from django.db import connection

from helmdash import __version__, conf
from helmdash.operations.backup import postgres, sqlite
from helmdash.operations.backup.archive import (
    DATABASE,
    KEY,
    SPOOL,
    TABLES,
    ArchiveWriter,
    Manifest,
    Progress,
    Table,
    writing,
)
from helmdash.operations.backup.spool import copied
from helmdash.operations.database.sqlite_file import database_file
from helmdash.places import SCHEMA_RELEASE, look_at_schema


def make_backup(path: Path, *, env: conf.Env, now: datetime, progress: Progress) -> Manifest:
    """Write an archive of database, secret key and spool; what is in it.

    A server may go on serving meanwhile. Whatever was accepted before this is called is in the
    archive. Raises OSError, and what the database raises; then there is no archive.
    """
    with writing(path) as archive:
        progress("copying the spool")
        for name, body in copied(env.data_dir / "spool"):
            archive.add(SPOOL + name, body)
        archive.add(KEY, conf.secret_key(env).encode("ascii"))
        if connection.vendor == "postgresql":
            tables, migrations = _postgres(archive, progress)
        else:
            tables, migrations = _sqlite(archive, path, progress)
        schema = look_at_schema(env)
        manifest = Manifest(
            helmdash=__version__,
            made_at=now.isoformat(),
            database=connection.vendor,
            release=schema.release or SCHEMA_RELEASE,
            migrations=migrations,
            tables=tables,
            members=archive.members,
        )
        archive.close(manifest)
    return manifest


def _postgres(
    archive: ArchiveWriter, progress: Progress
) -> tuple[Mapping[str, Table], Mapping[str, tuple[str, ...]]]:
    with postgres.one_moment():
        tables = postgres.tables()
        for name, table in tables.items():
            progress(f"copying {name}")
            with archive.member(TABLES + name) as write:
                rows = postgres.copy_out(name, table, write)
            tables[name] = replace(table, rows=rows)
        return tables, postgres.applied_migrations()


def _sqlite(
    archive: ArchiveWriter, path: Path, progress: Progress
) -> tuple[Mapping[str, Table], Mapping[str, tuple[str, ...]]]:
    source = database_file()
    if source is None:
        raise ValueError("a database in memory cannot be backed up")
    # Beside the archive, where there has to be room for it anyway, and where nobody else writes.
    copy = path.with_name(f".{path.name}.database.partial")
    # SQLite leaves its journal where the disk is too full to undo what was begun.
    left = (copy, copy.with_name(f"{copy.name}-journal"))
    _unlink(*left)
    try:
        sqlite.snapshot(source, copy, progress)
        progress("packing the database")
        archive.add_file(DATABASE, copy)
        return sqlite.table_rows(copy), sqlite.applied_migrations(copy)
    finally:
        _unlink(*left)


def _unlink(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
