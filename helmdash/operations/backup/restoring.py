"""Restoring: all is looked at first, then database, key and spool are put in their places."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg
from django.db import DatabaseError, connection, connections

from helmdash import conf
from helmdash.operations.backup import postgres, sqlite
from helmdash.operations.backup.archive import (
    DATABASE,
    KEY,
    SPOOL,
    TABLES,
    ArchiveProblem,
    ArchiveReader,
    Manifest,
    Progress,
    reading,
)
from helmdash.operations.backup.spool import is_in_use
from helmdash.places import SCHEMA_RELEASE, database_problem, sqlite_path

_NO_DATA = frozenset({".lock", ".spare"})
_KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class RestoreProblem(Exception):
    """The archive is whole, but may not be put here; the message says why and what to do."""


def restore(path: Path, *, env: conf.Env, force: bool, progress: Progress) -> Manifest:
    """Put an archive's database, secret key and spool here; what was in it.

    force: also over data that is here, which is then gone. Raises ArchiveProblem and
    RestoreProblem before anything is changed; OSError and what the database raises.
    """
    with reading(path, progress) as archive:
        manifest = archive.manifest
        _check(manifest, archive, env, force=force)
        if manifest.database == "postgresql":
            _put_postgres(archive, env, progress)
        else:
            _put_sqlite(archive, env, progress)
        _put_spool(archive, env.data_dir / "spool")
        if not env.secret_key and not _has_key(archive, env):
            archive.put(KEY, env.data_dir / conf.SECRET_KEY_FILE)
        connections.close_all()
        return manifest


def _check(manifest: Manifest, archive: ArchiveReader, env: conf.Env, *, force: bool) -> None:
    kind = manifest.database
    if kind != connection.vendor:
        raise RestoreProblem(
            f"the archive is of {_KINDS.get(kind, kind)}, and DATABASE_URL leads to "
            f"{_KINDS[connection.vendor]}: restore it into the kind it came from"
        )
    check_complete(archive)
    unknown = postgres.unknown_migrations(manifest.migrations)
    if manifest.release > SCHEMA_RELEASE or unknown:
        raise RestoreProblem(
            f"the archive's tables are of release {manifest.release}, made by HelmDash "
            f"{manifest.helmdash}, and this code knows release {SCHEMA_RELEASE}: install that one"
        )
    if env.secret_key and env.secret_key != archive.read(KEY).decode("ascii"):
        raise RestoreProblem(
            "HELMDASH_SECRET_KEY is another key than the archive's, which its provider keys are "
            "sealed with: unset it, and the archive brings its own"
        )
    spool = env.data_dir / "spool"
    if is_in_use(spool):
        raise RestoreProblem(f"a server is running on {env.data_dir}: stop it first")
    if kind == "postgresql" and (hosts := postgres.others_at_work()):
        where = ", ".join(host or "this host" for host in hosts)
        raise RestoreProblem(f"a HelmDash works on the database, from {where}: stop it first")
    here = None if force else find_data(env, key=archive.read(KEY))
    if here is not None:
        raise RestoreProblem(f"there is {here} already: with --force it is replaced, and gone")
    _check_places(archive, env)
    _check_room(manifest, env)


def check_complete(archive: ArchiveReader) -> None:
    """Whether all that a restore puts somewhere is there. Raises ArchiveProblem."""
    told = archive.manifest
    wanted = [DATABASE] if told.database == "sqlite" else [TABLES + name for name in told.tables]
    for name in (KEY, *wanted):
        if name not in told.members:
            raise ArchiveProblem(f"it lacks {name}")
    key = archive.read(KEY)
    if not key.strip() or not key.isascii():
        raise ArchiveProblem(f"its {KEY} is none")


def places_words(env: conf.Env) -> str:
    """Where a restore goes to, without a password."""
    return conf.masked(env.database_url) if env.database_url else str(env.data_dir)


def find_data(env: conf.Env, *, key: bytes) -> str | None:
    """What a restore with this secret key would replace here, in words; None: nothing."""
    path = sqlite_path(env)
    if sqlite.has_data(path) if path is not None else postgres.has_data():
        return f"data in {places_words(env)}"
    spool = env.data_dir / "spool"
    # Calls that wait, and what was put aside of them; locks and room that is kept are no data.
    if any(each.is_file() and each.suffix not in _NO_DATA for each in spool.rglob("*")):
        return f"a call that waits, or was put aside, in {spool}"
    own = env.data_dir / conf.SECRET_KEY_FILE
    is_kept = not env.secret_key and own.exists()
    if is_kept and own.read_bytes().strip() != key.strip():
        return f"another secret key in {own}, which provider keys elsewhere may be sealed with,"
    return None


def _check_places(archive: ArchiveReader, env: conf.Env) -> None:
    """Whether spool and key, which come after the database, will have their places then."""
    spool, own = env.data_dir / "spool", env.data_dir / conf.SECRET_KEY_FILE
    if os.path.lexists(spool) and not spool.is_dir():
        raise RestoreProblem(f"{spool} is no directory: move it away")
    if spool.is_dir() and not os.access(spool, os.R_OK | os.W_OK | os.X_OK):
        raise RestoreProblem(f"{spool} may not be written by this user")
    if env.secret_key or _has_key(archive, env):
        return
    if own.is_symlink() or (own.exists() and not own.is_file()):
        raise RestoreProblem(
            f"{own} leads elsewhere, to another key than the archive's: move it away, and the "
            "archive brings its own"
        )


def _has_key(archive: ArchiveReader, env: conf.Env) -> bool:
    own = env.data_dir / conf.SECRET_KEY_FILE
    return own.is_file() and own.read_bytes().strip() == archive.read(KEY).strip()


def _check_room(manifest: Manifest, env: conf.Env) -> None:
    here = [m.bytes for name, m in manifest.members.items() if not name.startswith(TABLES)]
    free = shutil.disk_usage(env.data_dir).free
    if sum(here) > free:
        raise RestoreProblem(
            f"HELMDASH_DATA_DIR={env.data_dir}: {sum(here)} bytes are needed, {free} are free"
        )


def _put_postgres(archive: ArchiveReader, env: conf.Env, progress: Progress) -> None:
    told = archive.manifest
    try:
        postgres.put_back(
            told.migrations, told.tables, lambda name: archive.pieces(TABLES + name), progress
        )
    except (DatabaseError, psycopg.Error, ValueError) as error:
        raise RestoreProblem(
            f"{places_words(env)}: nothing was put back: {database_problem(error)}"
        ) from None


def _put_sqlite(archive: ArchiveReader, env: conf.Env, progress: Progress) -> None:
    path = sqlite_path(env)
    if path is None:
        raise ValueError("this database is no file")
    copy = path.with_name(f".{path.name}.partial")
    try:
        progress("unpacking the database")
        archive.put(DATABASE, copy)
        progress("checking the database")
        if not sqlite.is_sound(copy):
            raise RestoreProblem("the archive's database is damaged")
        connections.close_all()
        sqlite.replace(path, copy)
    finally:
        copy.unlink(missing_ok=True)


def _put_spool(archive: ArchiveReader, directory: Path) -> None:
    """The spool of the archive, and nothing else, as files of processes that have ended."""
    directory.mkdir(mode=0o700, exist_ok=True)
    # It stays itself: it may be a link to another disk, or one that is mounted there.
    for each in directory.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    names = [name for name in archive.manifest.members if name.startswith(SPOOL)]
    for name in names:
        path = directory / name.removeprefix(SPOOL)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        archive.put(name, path)
