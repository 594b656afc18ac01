"""Where the data lies: can this database and this directory be used, and are the tables ours?

Asked once before a command does anything, without Django and its pool of connections, so that what
is wrong is one line that names the variable to change, and not a traceback after five seconds. No
password is ever part of such a line.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from helmdash import conf
from helmdash.installation import COMMAND

# Releases of the tables, counted; written into every database that `migrate` has brought here.
# A release adds tables, and columns that may be null or have a default of the database's, so that
# code of the release before goes on writing rows. A release that cannot keep to that sets
# OLDEST_CODE to itself.
SCHEMA_RELEASE = 2
OLDEST_CODE = 2

# A disk without room, or without room for this user.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# A server in the same network answers within milliseconds; one behind a dropped packet in a second
# or three.
_CONNECT_SECONDS = 5
_URL = re.compile(r"\w+://\S+")
# Is in a PostgreSQL database as long as rows are being moved into it (operations.moving).
UNFINISHED_MOVE = "helmdash_unfinished_move"
_MARK = "records_schemamark"
_UTF8 = "UTF8"
_HISTORY = "django_migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a database says of its tables. release: None before releases were counted."""

    is_empty: bool
    release: int | None = None
    oldest_code: int | None = None

    @property
    def is_too_new(self) -> bool:
        """This code must not touch it."""
        if self.release is None:
            return False
        return self.release > SCHEMA_RELEASE + 1 or (self.oldest_code or 0) > SCHEMA_RELEASE

    @property
    def is_ahead(self) -> bool:
        """It was brought to the next release, and this code still works on it."""
        return self.release is not None and self.release > SCHEMA_RELEASE and not self.is_too_new

    @property
    def is_behind(self) -> bool:
        """`up` has to bring it here first."""
        return not self.is_empty and (self.release is None or self.release < SCHEMA_RELEASE)


def sqlite_path(env: conf.Env) -> Path | None:
    """The file of SQLite; None on PostgreSQL."""
    if env.database_url.startswith("postgres"):
        return None
    told = env.database_url.removeprefix("sqlite:///")
    return Path(told) if told else env.data_dir / "helmdash.sqlite3"


def database_words(env: conf.Env) -> str:
    """`VARIABLE=value` of where the database is, without its password."""
    if env.database_url:
        return f"DATABASE_URL={conf.masked(env.database_url)}"
    return f"HELMDASH_DATA_DIR={env.data_dir}"


def check_directory(env: conf.Env, *, needs_room: bool = True) -> str | None:
    """Make the data directory where it is missing, and write into it. Raises BadSetting.

    needs_room: False lets a full disk pass, and gives what is wrong with it.
    """
    full: str | None = None
    probe: str | None = None
    try:
        env.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, probe = tempfile.mkstemp(prefix=".probe-", dir=env.data_dir)
        with os.fdopen(handle, "wb") as file:
            # As much as a page of the database: a disk that is full takes less.
            file.write(bytes(65_536))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        problem = f"HELMDASH_DATA_DIR={env.data_dir}: {directory_problem(error)}"
        if needs_room or error.errno not in FULL:
            raise conf.BadSetting(problem) from None
        full = problem
    finally:
        if probe is not None:
            with contextlib.suppress(OSError):
                os.unlink(probe)
    for name in ("spool", "static", "logs"):
        path = env.data_dir / name
        if path.exists() and not path.is_dir():
            raise conf.BadSetting(
                f"HELMDASH_DATA_DIR={env.data_dir}: {path} is in the way: it must be a directory"
            )
    return full


def directory_problem(error: OSError) -> str:
    """Why a directory cannot be used, in words."""
    words = {
        errno.EEXIST: "is a file; name a directory",
        errno.ENOTDIR: "lies below a file; name a directory",
        errno.EROFS: "is on a file system that is read-only",
        errno.EACCES: "this user may not write there",
        errno.EPERM: "this user may not write there",
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk is full for this user",
        errno.ENOENT: "cannot be made there",
    }
    return words.get(error.errno or 0, (error.strerror or str(error)).lower())


def look_at_schema(env: conf.Env, *, to_write: bool = False) -> Schema:
    """What the database holds. Makes nothing. Raises BadSetting where it cannot be used.

    to_write: a SQLite file that somebody keeps locked for writing cannot be used either.
    """
    with _opened(env) as found:
        if found is not None and to_write:
            found.try_writing()
        if found is not None and found.has(UNFINISHED_MOVE):
            raise conf.BadSetting(
                f"{database_words(env)}: a move into it is not finished; without DATABASE_URL "
                f"`{COMMAND} move --to` it again goes on with it"
            )
        if found is None or not found.has(_HISTORY):
            _check_encoding(found, env)
            return Schema(is_empty=True)
        if not found.has(_MARK):
            return Schema(is_empty=False)
        rows = found.ask(f"SELECT release, oldest_code FROM {_MARK} ORDER BY release DESC LIMIT 1")
        if not rows:
            return Schema(is_empty=False)
        return Schema(is_empty=False, release=int(rows[0][0]), oldest_code=int(rows[0][1]))


def _check_encoding(found: _Open | None, env: conf.Env) -> None:
    """A database in which not every text finds room is to say so before tables are made there."""
    if found is not None and found.encoding != _UTF8:
        raise conf.BadSetting(
            f"{database_words(env)}: the database's encoding is {found.encoding}; make one with "
            f"ENCODING '{_UTF8}'"
        )


def check_schema(schema: Schema, env: conf.Env, *, brings: bool) -> None:
    """Whether this code may work on these tables. brings: the command brings older ones here.

    Raises BadSetting.
    """
    where = database_words(env)
    if schema.is_too_new:
        raise conf.BadSetting(
            f"{where}: its tables are of release {schema.release}, and this code knows release "
            f"{SCHEMA_RELEASE}; install a newer HelmDash, or restore a backup of this release"
        )
    if brings:
        return
    if schema.is_empty:
        raise conf.BadSetting(f"{where}: there are no tables yet; run `{COMMAND} up` first")
    if schema.is_behind:
        raise conf.BadSetting(
            f"{where}: its tables are of an older release; run `{COMMAND} up` to bring them here"
        )


def database_problem(error: BaseException) -> str:
    """What a driver said, in one line, without any URL."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "ERROR" in line] or lines[:1]
    line = telling[0] if telling else type(error).__name__
    for mark in ("FATAL:", "ERROR:"):
        line = line.rpartition(mark)[2]
    # A URL that libpq cannot read is quoted whole, with its password.
    line = _URL.sub("(the URL)", line).strip().rstrip(".")
    words = {
        "file is not a database": "the file there is not a SQLite database",
        "unable to open database file": "the SQLite file cannot be opened or made",
        "database is locked": "the SQLite file is locked by another process",
        "database disk image is malformed": "the SQLite file is damaged; restore a backup",
        "database or disk is full": "the disk is full",
        "attempt to write a readonly database": "the SQLite file cannot be written",
    }
    return words.get(line, line)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A database that answers: how it is asked, and what asks for a table by name."""

    ask: Callable[[str], list[Any]]
    table: str
    encoding: str = _UTF8

    def try_writing(self) -> None:
        """Take SQLite's lock of writers and let go of it."""
        if "sqlite_master" in self.table:
            self.ask("BEGIN IMMEDIATE")
            self.ask("ROLLBACK")

    def has(self, table: str) -> bool:
        rows = self.ask(self.table.format(table))
        return bool(rows) and rows[0][0] is not None


@contextmanager
def _opened(env: conf.Env) -> Iterator[_Open | None]:
    """The database, opened; None where there is no file yet. Raises BadSetting."""
    path = sqlite_path(env)
    try:
        if path is None:
            with _postgres(env) as found:
                yield found
        else:
            with _sqlite(path) as file:
                yield file
    except (sqlite3.Error, OSError) as error:
        raise conf.BadSetting(f"{database_words(env)}: {database_problem(error)}") from None


@contextmanager
def _sqlite(path: Path) -> Iterator[_Open | None]:
    if not path.parent.is_dir():
        raise OSError(f"{path.parent} is not a directory")
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        yield None
        return
    if not path.is_file():
        raise OSError(f"{path} is not a file")
    uri = f"file:{quote(str(path))}?mode=rw"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_CONNECT_SECONDS)) as handle:
        yield _Open(
            ask=lambda statement: handle.execute(statement).fetchall(),
            table="SELECT name FROM sqlite_master WHERE name = '{}'",
        )


@contextmanager
def _postgres(env: conf.Env) -> Iterator[_Open]:
    import psycopg

    words = database_words(env)
    try:
        handle = psycopg.connect(
            env.database_url,
            connect_timeout=_CONNECT_SECONDS,
            application_name="helmdash-check",
            # As the server asks for: a pooler that refuses it is to say so before anything starts.
            options=None if "options=" in env.database_url else "-c lock_timeout=0",
        )
    except (psycopg.Error, ValueError) as error:
        problem = database_problem(error)
        if "unsupported startup parameter" in problem:
            problem += "; pgbouncer.ini needs ignore_startup_parameters = options"
        raise conf.BadSetting(f"{words}: cannot connect: {problem}") from None
    with contextlib.closing(handle):
        try:
            yield _Open(
                ask=lambda statement: list(handle.execute(statement.encode()).fetchall()),
                table="SELECT to_regclass('{}')",
                encoding=handle.info.parameter_status("server_encoding") or _UTF8,
            )
        except psycopg.Error as error:
            raise conf.BadSetting(f"{words}: {database_problem(error)}") from None
