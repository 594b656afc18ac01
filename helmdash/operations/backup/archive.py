"""The archive: a zip of known members, and a manifest that is written last and says what is whole.

Its file is its owner's alone, and has its name only once it is complete: what is being written has
another one. Nothing in an archive decides where a member is put; names are only compared.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database.sqlite3"
KEY = "secret-key"
TABLES = "tables/"
SPOOL = "spool/"
# A table, a file of the spool: one name, no way out of a directory.
_MEMBER = re.compile(
    rf"{re.escape(DATABASE)}|{KEY}|{TABLES}[a-z0-9_]{{1,63}}"
    rf"|{SPOOL}(?:[A-Za-z0-9_-][A-Za-z0-9._-]{{0,120}}/)?[A-Za-z0-9_-][A-Za-z0-9._-]{{0,200}}"
)
_PIECE_BYTES = 1 << 20
# Rows are text that repeats: the fastest level takes three quarters of what the slowest one takes.
_LEVEL = 1
_MOST_MANIFEST_BYTES = 16 * 1024 * 1024
_BUSY = "another backup is being written there at this moment"

Progress = Callable[[str], None]


class ArchiveProblem(Exception):
    """This file is no archive of ours, or is damaged; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of PostgreSQL as it was copied. sequence: the last id it gave, if it gives any."""

    columns: tuple[str, ...]
    rows: int
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    """A file in the archive: its bytes unpacked, and their SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an archive holds. release: of the tables; migrations: those applied, by app.

    tables: rows of each table; of PostgreSQL also how its columns lie.
    """

    helmdash: str
    made_at: str
    database: str
    release: int
    migrations: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Table]
    members: Mapping[str, ArchiveMember]

    @property
    def rows(self) -> int:
        """How many rows all tables have together."""
        return sum(table.rows for table in self.tables.values())

    @property
    def size_bytes(self) -> int:
        """The room that all members take unpacked."""
        return sum(member.bytes for member in self.members.values())


class ArchiveWriter:
    """An archive that is being written."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self.members: dict[str, ArchiveMember] = {}

    @contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """Begin a member; what is given takes its bytes, and its checksum is known when the block
        ends."""
        digest, size = hashlib.sha256(), 0
        with self._file.open(_info(name), "w", force_zip64=True) as file:

            def write(piece: bytes) -> None:
                nonlocal size
                file.write(piece)
                digest.update(piece)
                size += len(piece)

            yield write
        self.members[name] = ArchiveMember(bytes=size, sha256=digest.hexdigest())

    def add(self, name: str, body: bytes) -> None:
        """Add a member whose bytes are at hand."""
        with self.member(name) as write:
            write(body)

    def add_file(self, name: str, path: Path) -> None:
        """Copy a file into the archive as a member of this name, piece by piece."""
        with self.member(name) as write, path.open("rb") as file:
            for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
                write(piece)

    def close(self, manifest: Manifest) -> None:
        """Write the manifest behind the members: without it an archive counts as broken off."""
        body = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1).encode()
        with self._file.open(_info(MANIFEST), "w") as file:
            file.write(body)


@contextmanager
def writing(path: Path) -> Iterator[ArchiveWriter]:
    """A new archive at the path; there only if the block ends well. Raises OSError, also where
    another one is being written there."""
    partial = path.with_name(f".{path.name}.partial")
    with os.fdopen(_begun(partial), "w+b") as file:
        try:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as packed:
                yield ArchiveWriter(packed)
            file.flush()
            os.fsync(file.fileno())
            if not _is_at(partial, file.fileno()):
                raise OSError(errno.EBUSY, _BUSY)
            partial.replace(path)
        except BaseException:
            if _is_at(partial, file.fileno()):
                partial.unlink()
            raise
    _sync_directory(path.parent)


def _begun(partial: Path) -> int:
    """A new file of this name, locked for as long as it is open. Raises OSError."""
    while True:
        try:
            handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            _clear(partial)
            continue
        if _lock(handle) and _is_at(partial, handle):
            return handle
        os.close(handle)  # somebody took it for one that was left


def _clear(partial: Path) -> None:
    """Take away what a process that was killed has left. Raises OSError where one lives."""
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _lock(handle):
                raise OSError(errno.EBUSY, _BUSY)
            if _is_at(partial, handle):
                partial.unlink()
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """Whether an open file is locked by us now; True where its file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file is the one of this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(handle))
    return False


class ArchiveReader:
    """An archive that is read. Every member was compared with the manifest before."""

    def __init__(self, file: zipfile.ZipFile, manifest: Manifest) -> None:
        self._file = file
        self.manifest = manifest

    def pieces(self, name: str) -> Iterator[bytes]:
        """A member's bytes piece by piece, so that a database need not fit into memory."""
        with self._file.open(name) as file:
            yield from iter(lambda: file.read(_PIECE_BYTES), b"")

    def read(self, name: str) -> bytes:
        """A member's bytes at once; for small ones."""
        return b"".join(self.pieces(name))

    def put(self, name: str, path: Path) -> None:
        """A member as a file of its owner's alone, on the disk when this returns."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for piece in self.pieces(name):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def reading(path: Path, progress: Progress) -> Iterator[ArchiveReader]:
    """Open an archive and read all of it once. Raises ArchiveProblem, and OSError."""
    if path.exists() and not path.is_file():
        raise ArchiveProblem("it is no file")
    with path.open("rb") as file:
        try:
            packed = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise ArchiveProblem("it is no archive, or its end is missing") from None
        with packed:
            reader = ArchiveReader(packed, _manifest(packed))
            _compare(reader, packed, progress)
            yield reader


def _manifest(packed: zipfile.ZipFile) -> Manifest:
    if MANIFEST not in packed.namelist():
        raise ArchiveProblem("it has no manifest: it is no backup, or one that was never finished")
    try:
        if packed.getinfo(MANIFEST).file_size > _MOST_MANIFEST_BYTES:
            raise ArchiveProblem("its manifest is too large")
        told: Any = json.loads(packed.read(MANIFEST))
        if told["format"] != FORMAT:
            raise ArchiveProblem(f"it has format {told['format']}; install a newer HelmDash")
        return Manifest(
            helmdash=str(told["helmdash"]),
            made_at=str(told["made_at"]),
            database=str(told["database"]),
            release=int(told["release"]),
            migrations={app: tuple(names) for app, names in told["migrations"].items()},
            tables={name: _table(table) for name, table in told["tables"].items()},
            members={name: ArchiveMember(**member) for name, member in told["members"].items()},
        )
    except KeyError as error:
        raise ArchiveProblem(f"its manifest lacks {error.args[0]}") from None
    except _DAMAGED:
        raise ArchiveProblem("its manifest cannot be read") from None


def _table(told: Any) -> Table:
    return Table(columns=tuple(told["columns"]), rows=int(told["rows"]), sequence=told["sequence"])


def _compare(reader: ArchiveReader, packed: zipfile.ZipFile, progress: Progress) -> None:
    """Whether the members are those of the manifest, byte for byte."""
    members = reader.manifest.members
    names = sorted(info.filename for info in packed.infolist() if info.filename != MANIFEST)
    if names != sorted(members):
        raise ArchiveProblem("its members are not those of its manifest")
    for name in names:
        if not _MEMBER.fullmatch(name):
            raise ArchiveProblem(f"it has a member called {name[:80]!r}, which is none of ours")
    for name, member in members.items():
        progress(f"checking {name}")
        digest, size = hashlib.sha256(), 0
        try:
            for piece in reader.pieces(name):
                digest.update(piece)
                size += len(piece)
                if size > member.bytes:
                    break
        except _DAMAGED:
            raise ArchiveProblem(f"{name} cannot be read") from None
        if size != member.bytes or digest.hexdigest() != member.sha256:
            raise ArchiveProblem(f"{name} is not what was written")


_DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError, AttributeError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def _info(name: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    found.compress_type = zipfile.ZIP_DEFLATED
    found.external_attr = 0o600 << 16
    return found


def _sync_directory(path: Path) -> None:
    """A rename is on the disk once its directory is; not every file system lets one ask."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
