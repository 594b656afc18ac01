"""Orphaned segments of the spool: read back in order by the process that starts next.

A process that was killed, or that stopped while the database was unavailable, leaves its segments.
Whose lock can be taken is dead. Ids make it harmless to store a call that was stored already.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from helmdash.operations.recorder.files.damaged_lines import DamagedLines
from helmdash.operations.recorder.files.spare import SUFFIX
from helmdash.operations.recorder.files.spool_lines import (
    CALL,
    Begun,
    Counted,
    Done,
    Ended,
    Line,
    Written,
    counted_line,
    read_line,
    salvaged,
)
from helmdash.operations.recorder.files.stuck_files import note_stuck

logger = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 18
_ZEROS = bytes(_PIECE_BYTES)
_ENDS = bytes.maketrans(b"\0\r", b"\n\n")
# Longer than any line of ours: a request and a reply of the largest sizes.
_LONGEST_BYTES = 256 * 1024 * 1024

# Of any process.
SEGMENTS = "*-??????.ndjson"


@dataclass(slots=True, kw_only=True)
class OrphanedSegments:
    """The files of one process that has ended."""

    process: str
    lock: Path
    lock_handle: int
    segments: tuple[Path, ...]
    size: int = 0
    """Bytes that were written in them."""
    calls: int = 0
    """Calls that wait to be stored."""
    damaged: int = 0
    """Lines that cannot be read, and that nobody has counted before."""
    in_flight: tuple[str, ...] = ()
    """Ids of calls that began and never ended."""
    is_booked: bool = False
    """The ledger's row of the process is closed."""
    problem: str = ""
    """Why the files stay: something in them could not be read or put aside."""
    _done: list[tuple[int, int]] = field(default_factory=list)

    @property
    def began_at(self) -> float:
        """When the process started, in seconds of the epoch: the lock is made then."""
        return _age(self.lock)

    def lines(self) -> Iterator[tuple[Written, bytes]]:
        """The calls that wait, in the order they were written, each with its line."""
        for line in self._raw_lines():
            if not line.startswith(CALL) and CALL not in line:
                continue
            for told, piece in _read(line):
                if isinstance(told, Written) and not self._is_done(told.seq):
                    yield told, piece

    def mark_counted(self) -> None:
        """Remember on disk that what is lost here was counted, should this process die too."""
        if (self.in_flight or self.damaged) and self.segments:
            with contextlib.suppress(OSError), self.segments[-1].open("ab") as file:
                file.write(counted_line())

    def discard(self) -> None:
        """Delete the files: all in them is stored or put aside. What refuses to go stays."""
        try:
            if not self.problem:
                # The lock last: it is what the others are found by.
                for path in (*self.segments, self.lock.with_suffix(SUFFIX), self.lock):
                    path.unlink(missing_ok=True)
        except OSError as error:
            logger.error("a file of the spool cannot be removed, and stays: %s", error)
            self.problem = f"it cannot be removed: {error}"
        finally:
            self.release()

    def release(self) -> None:
        """Leave the files to whoever starts next."""
        note_stuck(self.lock_handle, self.problem)
        os.close(self.lock_handle)

    def scan(self, aside: DamagedLines) -> None:
        """Read everything once: what is done, what waits, what was under way, what is damaged."""
        begun: dict[str, None] = {}
        damaged: list[bytes] = []
        room = aside.most_bytes
        self._done = _merged(
            [each for told, _ in self._read() if isinstance(told, Done) for each in told.ranges]
        )
        for told, line in self._read():
            self.size += len(line) + 1
            match told:
                case None:
                    # What has no room there is counted only.
                    damaged.append(line if room > 0 else b"")
                    room -= len(line)
                case Counted():
                    begun.clear()
                    damaged.clear()
                case Begun(call_id):
                    begun[call_id] = None
                case Ended(call_id):
                    begun.pop(call_id, None)
                case Written(seq, _, capture):
                    begun.pop(str(capture.get("id")), None)
                    self.calls += not self._is_done(seq)
        self.in_flight, self.damaged = tuple(begun), len(damaged)
        if damaged and not aside.keep(damaged):
            self.problem = self.problem or "damaged lines in it could not be kept aside"

    def _read(self) -> Iterator[tuple[Line | None, bytes]]:
        for line in self._raw_lines():
            yield from _read(line)

    def _raw_lines(self) -> Iterator[bytes]:
        for path in self.segments:
            try:
                # To open a pipe of that name waits for whoever writes into it, for ever.
                if not path.is_file():
                    raise OSError(f"{path.name} is not an ordinary file")
                with path.open("rb") as file:
                    yield from _texts(file)
            except OSError as error:
                if not self.problem:
                    logger.error("the spool cannot be read, and its files stay: %s", error)
                self.problem = str(error)

    def _is_done(self, seq: int) -> bool:
        place = bisect_right(self._done, (seq, 1 << 62)) - 1
        return place >= 0 and seq <= self._done[place][1]


def _read(line: bytes) -> Iterator[tuple[Line | None, bytes]]:
    """What a line says; where it cannot be read, what can be read of it."""
    told = read_line(line)
    return iter([(told, line)]) if told is not None else salvaged(line)


def _texts(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is longer than any call the beginning alone, for a file may
    be larger than the memory."""
    parts: list[bytes] = []
    size = 0
    # What was reserved and not written is zeros, which end a line as well; what is done is blank.
    while piece := file.read(_PIECE_BYTES):
        is_blank = piece == _ZEROS[: len(piece)]
        *ended, rest = (b"", b"") if is_blank else piece.translate(_ENDS).split(b"\n")
        for line in ended:
            text = b"".join((*parts, line)).strip(b"\t ")
            parts, size = [], 0
            if text:
                yield text
        if size < _LONGEST_BYTES and rest:
            parts.append(rest)
            size += len(rest)
        if is_blank and not _skip_hole(file):
            break
    if text := b"".join(parts).strip(b"\t "):
        yield text


def _skip_hole(file: BinaryIO) -> bool:
    """Go on behind zeros that take no room on the disk, of which a file may have any number; False:
    nothing else comes."""
    if not hasattr(os, "SEEK_DATA"):
        return True
    try:
        file.seek(file.tell(), os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        if error.errno != errno.EINVAL:  # that of a file system that tells no holes
            raise
    return True


class Adoption:
    """Taking over the orphaned segments of several processes, read back one after the other."""

    def __init__(self, orphaned: Sequence[OrphanedSegments] = ()) -> None:
        self._unread = deque(orphaned)
        self._lines: Iterator[tuple[Written, bytes]] | None = None
        self._read: deque[OrphanedSegments] = deque()

    def __bool__(self) -> bool:
        return bool(self._unread or self._read)

    @property
    def is_waiting(self) -> bool:
        """There may be calls that were not taken yet."""
        return bool(self._unread)

    @property
    def read_out(self) -> OrphanedSegments | None:
        """One whose calls have all been taken, the oldest; None: there is none."""
        return self._read[0] if self._read else None

    def take(self, *, calls: int, size: int) -> Iterator[tuple[Written, bytes]]:
        """The next calls with their lines: at most so many, until they have so many bytes; of one
        process only."""
        if self._lines is None:
            self._lines = self._unread[0].lines()
        while calls > 0 and size > 0:
            found = next(self._lines, None)
            if found is None:
                self._lines = None
                self._read.append(self._unread.popleft())
                return
            calls, size = calls - 1, size - len(found[1])
            yield found

    def unbooked(self) -> list[OrphanedSegments]:
        """Those whose row in the ledger is not closed."""
        return [each for each in (*self._unread, *self._read) if not each.is_booked]

    def forget(self, orphaned: OrphanedSegments) -> None:
        """All of it is stored."""
        self._read.remove(orphaned)

    def release(self) -> None:
        """Leave the files to whoever starts next."""
        for orphaned in (*self._unread, *self._read):
            orphaned.release()
        self._unread.clear()
        self._read.clear()
        self._lines = None


def adopt(directory: Path) -> list[OrphanedSegments]:
    """Take over the files of every process that has ended; oldest first."""
    _make_missing_locks(directory)
    aside = DamagedLines(directory)
    found: list[OrphanedSegments] = []
    for lock in sorted(directory.glob("*.lock"), key=_age):
        handle = _take(lock)
        if handle is None:
            continue
        process = lock.name.removesuffix(".lock")
        segments = tuple(sorted(directory.glob(f"{process}-??????.ndjson")))
        orphaned = OrphanedSegments(
            process=process,
            lock=lock,
            lock_handle=handle,
            segments=segments,
        )
        orphaned.scan(aside)
        note_stuck(handle, orphaned.problem)
        found.append(orphaned)
    return found


def _make_missing_locks(directory: Path) -> None:
    """For files without one: a copy of a spool often leaves empty files out.

    A process that lives makes its lock first and removes it last, so nobody has them open.
    """
    owners = [path.name.rpartition("-")[0] for path in directory.glob(SEGMENTS)]
    owners += [path.stem for path in directory.glob(f"*{SUFFIX}")]
    for owner in owners:
        lock = directory / f"{owner}.lock"
        with contextlib.suppress(OSError):
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _take(lock: Path) -> int | None:
    """The lock of a process that has ended; None when it lives or somebody else was first."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        # Of another user, who once ran a server or a command here.
        logger.error("calls that wait in the spool may stay there: %s", error)
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(lock).st_ino == os.fstat(handle).st_ino:
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def _age(lock: Path) -> float:
    with contextlib.suppress(OSError):
        return lock.stat().st_mtime
    return 0.0


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
