"""opencode's messages: in SQLite, and in a file for each before that.

The input leaves the cache out, the output the reasoning. A session with a parent is a sub-agent's.
A fork begins with its source's messages under new ids: a session whose title says so, or that
begins in the same millisecond as another, is looked through for them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import (
    Origin,
    Tokens,
    TranscriptCall,
    count_of,
    member,
    moment_of,
    sum_of,
    text_of,
)
from helmdash.transcripts.reading import (
    MAX_DOCUMENT_BYTES,
    FileReader,
    Home,
    WholeFile,
    parse_object,
    read_document,
    walk,
)

CLIENT = "opencode"
# While opencode writes.
_BUSY_SECONDS = 2.0
_PAGE_ROWS = 500
_PAGE = "SELECT rowid, id, session_id FROM message WHERE rowid > ? ORDER BY rowid LIMIT ?"
# Nothing longer is made an object of: no message is.
_DATA = f"SELECT data FROM message WHERE rowid = ? AND length(data) <= {MAX_DOCUMENT_BYTES}"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
# What opencode calls a fork, until somebody gives it another title.
_FORK = re.compile(r"\(fork #\d+\)$")


class OpencodeReader:
    """Databases and messages below opencode's folder of data."""

    name = "opencode"

    def files(self, home: Home) -> Iterator[Path]:
        """The databases, and the messages of older releases."""
        root = home.data("opencode")
        for path in sorted(root.glob("opencode*.db")) if root.is_dir() else []:
            if path.is_file() and not path.is_symlink():
                yield path
        yield from walk(root / "storage" / "message", ".json")

    def open(self, path: Path) -> FileReader:
        """A reader of a database, or of one message."""
        return DatabaseFile(path) if path.suffix == ".db" else MessageFile(path)


class MessageFile(WholeFile):
    """One message of an older release."""

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        message = read_document(self._path)
        if not isinstance(message, dict):
            self.left_out["unreadable files"] = 1
            return
        session = text_of(message.get("sessionID")) or self._path.parent.name
        name = text_of(message.get("id")) or self._path.stem
        call = _call(Origin(self._path, 1), name, session, self._parent_of(session), message)
        if call is not None:
            yield call

    def _parent_of(self, session: str) -> str | None:
        storage = self._path.parent.parent.parent
        for path in walk(storage / "session", f"{session}.json"):
            return text_of(member(read_document(path), "parentID"))
        return None


class DatabaseFile(WholeFile):
    """A database, of which nothing is changed; what came since the last time is asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._settled: set[str] = set()  # calls that were given, and what will never be one
        self._unreadable: set[str] = set()
        self._forks: set[str] = set()
        self._moments: dict[int, str] = {}  # of a call: the session that had it first
        self._begins: dict[str, Any] = {}  # of a session: when its first message was made

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader. Raises OSError also where it is no database of opencode's."""
        try:
            yield from self._read()
        except sqlite3.Error as error:
            raise OSError(f"{self._path}: {error}") from error
        except UnicodeDecodeError as error:
            # sqlite3 fails on its own sentence where that names a broken table.
            raise OSError(f"{self._path}: database is damaged") from error

    def _read(self) -> Iterator[TranscriptCall]:
        database = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS
        )
        # One text that is not UTF-8 should not end the reading of all others.
        database.text_factory = _text
        try:
            if "message" not in _tables(database):
                raise sqlite3.DatabaseError("has no table of messages")
            parents, number, after = dict(_parents(database)), 0, -(2**63)
            self._forks = set(_forks(database))
            # In pages, so that nothing is locked while a call is on its way.
            while rows := database.execute(_PAGE, (after, _PAGE_ROWS)).fetchall():
                if rows[-1][0] <= after:  # a damaged index would lead in a circle
                    raise sqlite3.DatabaseError("its rows are not in order")
                after = rows[-1][0]
                for row, name, session in rows:
                    number += 1
                    if name in self._settled:
                        continue
                    data = database.execute(_DATA, (row,)).fetchone()
                    place = Origin(self._path, number)
                    call = self._take(place, name, session, parents, data[0] if data else None)
                    if call is not None:
                        yield call
            self.left_out["unreadable rows"] = len(self._unreadable)
        finally:
            database.close()

    def _take(
        self, place: Origin, name: Any, session: Any, parents: dict[str, str], data: object
    ) -> TranscriptCall | None:
        message = parse_object(data if isinstance(data, bytes) else str(data).encode())
        if message is None:
            self._unreadable.add(name)
            return None
        self._unreadable.discard(name)
        self._begins.setdefault(str(session), member(message, "time", "created"))
        call = _call(place, str(name), str(session), parents.get(session), message)
        if call is not None or message.get("role") != "assistant":
            self._settled.add(name)
        if call is None or not self._is_copied(call, message, is_part=session in parents):
            return call
        self.left_out["copies"] += 1
        return None

    def _is_copied(self, call: TranscriptCall, message: dict[str, Any], *, is_part: bool) -> bool:
        """Whether a fork has the call from another session: it keeps times and counts. Without a
        title that says so, the sessions' first messages have to be of one millisecond as well;
        sub-agents that are started together (is_part) may be.
        """
        over, tokens = member(message, "time", "completed"), call.tokens
        told = (call.started_at, over, call.model, tokens.prompt, tokens.completion)
        first = self._moments.setdefault(hash(repr(told)), call.conversation)
        if first == call.conversation:
            return False
        begin = self._begins.get(call.conversation)
        begins_alike = begin is not None and begin == self._begins.get(first)
        return call.conversation in self._forks or (
            begins_alike and over is not None and not is_part
        )


def _text(written: bytes) -> str:
    return written.decode("utf-8", "replace")


def _tables(database: sqlite3.Connection) -> set[str]:
    """Not views: opencode has none, and one may go on for ever."""
    return {name for (name,) in database.execute(_TABLES)}


def _forks(database: sqlite3.Connection) -> Iterator[str]:
    """The sessions that are called a fork of another."""
    if {"id", "title"} <= _columns_of_sessions(database):
        for name, title in database.execute(
            "SELECT id, title FROM session WHERE title LIKE '%(fork #%'"
        ):
            if isinstance(title, str) and _FORK.search(title):
                yield str(name)


def _parents(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Each sub-agent's session with its parent's."""
    if {"id", "parent_id"} <= _columns_of_sessions(database):
        for session, parent in database.execute(
            "SELECT id, parent_id FROM session WHERE parent_id IS NOT NULL AND parent_id != ''"
        ):
            # SQLite keeps numbers and bytes in any column.
            if isinstance(parent, str):
                yield session, parent


def _columns_of_sessions(database: sqlite3.Connection) -> set[str]:
    if "session" not in _tables(database):
        return set()
    return {row[1] for row in database.execute("PRAGMA table_info(session)")}


def _call(
    origin: Origin, name: str, session: str, parent: str | None, message: dict[str, Any]
) -> TranscriptCall | None:
    """The call of an assistant's message; None while it is under way."""
    if message.get("role") != "assistant":
        return None
    tokens, error = _tokens(message.get("tokens")), message.get("error")
    is_over = member(message, "time", "completed") is not None
    if (not tokens and not isinstance(error, dict)) or not (is_over or isinstance(error, dict)):
        return None
    code = text_of(member(error, "name"))
    status = None if code is None else "cancelled" if code == "MessageAbortedError" else "error"
    is_summary = message.get("summary") is True
    return TranscriptCall(
        origin=origin,
        client=CLIENT,
        id=f"opencode:{name}",
        conversation=session,
        parent=parent,
        model=text_of(message.get("modelID")) or "unknown",
        provider=text_of(message.get("providerID")),
        started_at=moment_of(member(message, "time", "created")),
        tokens=tokens,
        is_side=is_summary,
        purpose="compaction" if is_summary else None,
        finish_reason=text_of(message.get("finish")),
        status=status,
        http_status=count_of(member(error, "data", "statusCode")),
        error_code=code,
        error_message=text_of(member(error, "data", "message")),
        directory=text_of(member(message, "path", "cwd")),
    )


def _tokens(told: object) -> Tokens:
    read = count_of(member(told, "cache", "read"))
    written = count_of(member(told, "cache", "write"))
    reasoning = count_of(member(told, "reasoning"))
    return Tokens(
        prompt=sum_of(count_of(member(told, "input")), read, written),
        completion=sum_of(count_of(member(told, "output")), reasoning),
        cached=read,
        cache_write=written,
        reasoning=reasoning,
    )
