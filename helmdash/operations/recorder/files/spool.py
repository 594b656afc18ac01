"""The spool: every call of the gateway is written down here before its client has all of it.

Lines of JSON in segments `<process>-<number>.ndjson`, whose room is reserved: what was written
there survives a crash (SIGKILL), and once `sync` ran, a power cut. What is not written is zeros.
Four kinds of lines:

    {"begin":ID,"project":N,"crc":N}                  a call is under way
    {"end":ID,"crc":N}                                it ended with nothing to record
    {"seq":N,"project":N,"capture":{...},"crc":N}     it ended; this is all that was seen
    {"done":[[FROM,TO],...],"crc":N}                  calls by their seq: stored, or given up

A call that is done becomes a note of its end, for its texts are to be where the project wants them
and nowhere else. A segment goes when all in it is done. A file `<process>.lock`, locked for as long
as the process lives, tells files in use from those of a process that was killed
(`orphaned_segments`). `segments` has the files, `spool_lines` the lines, `damaged_lines` what
becomes of those that cannot be read, `spare` the room that is kept back for a full disk. Whoever
cuts or deletes our files while we live costs no call that is in memory: `broken` tells of them, and
`mend` writes the lines down again.

Not thread-safe by itself: the recorder calls everything here under its lock, but for `sync`,
`broken`, `read` and `count`, which touch only what no other thread changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from helmdash.operations.recorder.files.segments import Segment, make_segment, reserve
from helmdash.operations.recorder.files.spare import SUFFIX, Spare
from helmdash.operations.recorder.files.spool_lines import (
    CALL,
    Written,
    begin_line,
    call_line,
    done_line,
    end_line,
    read_line,
)

logger = logging.getLogger(__name__)

# Large enough that files are opened and deleted rarely, small enough that they go soon: what has
# been touched of them is memory.
SEGMENT_BYTES = 2 * 1024 * 1024
# From this share of the room on, calls are spooled without their texts.
TEXTS_UNTIL = 0.75
# What a call takes without them, and hardly ever more.
_FIGURES_BYTES = 4 * 1024
# A file that is emptied with every call costs more than one that is emptied now and then.
_WORTH_EMPTYING_BYTES = 256 * 1024
# The seq of a line that somebody spoilt under our hands.
UNREADABLE = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a call lies."""

    seq: int
    segment: Segment
    offset: int
    size: int
    """Bytes of its line, with the line break."""
    call_id: str


class Spool:
    """The segments of this process."""

    def __init__(
        self, directory: Path, name: str, *, max_bytes: int, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._directory = directory
        self._name = name
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._segments: deque[Segment] = deque()
        self._spare = Spare(directory / f"{name}{SUFFIX}", segment_bytes)
        self._under_way: dict[str, tuple[Segment, bytes]] = {}
        self._lock_handle: int | None = None
        self._number = 0
        self._seq = 0
        self._is_failing = False
        self.size = 0
        """Bytes in all segments."""
        self.foreign_size = 0
        """Bytes that other processes left here and that are being read back."""

    @property
    def is_short(self) -> bool:
        """Calls should come without their texts."""
        used = self.size + self.foreign_size
        return self._spare.is_missing or used >= self._max_bytes * TEXTS_UNTIL

    @property
    def has_room(self) -> bool:
        """The calls under way, and one more, would find room for all but their texts."""
        wanted = _FIGURES_BYTES * (len(self._under_way) + 1)
        if self.size + self.foreign_size + wanted > self._max_bytes:
            return False
        left = self._segments[-1].room - self._segments[-1].size if self._segments else 0
        return self._spare.is_there or left >= wanted

    def open(self) -> None:
        """Make the directory and the lock. Raises OSError."""
        if self._lock_handle is not None:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._lock_handle = handle
        self._spare.keep()

    def keep_room(self) -> None:
        """Keep some room of the disk back, as soon as it has any."""
        if self._lock_handle is not None:
            self._spare.keep()

    def begin(self, call_id: str, project_id: int) -> None:
        """Note that a call is under way."""
        line = begin_line(call_id, project_id)
        written = self._append(line)
        if written is not None:
            self._under_way[call_id] = (written[0], line)

    def end(self, call_id: str) -> None:
        """Note that it ended with nothing to record."""
        if self._under_way.pop(call_id, None) is not None:
            self._append(end_line(call_id))

    def add(self, *, project_id: int, capture: bytes, call_id: str) -> Entry | None:
        """Write a call down; None when there is no room or the disk refuses."""
        self._seq += 1
        line = call_line(self._seq, project_id, capture)
        written = self._append(line)
        if written is None:
            return None
        segment, offset = written
        segment.unsettled += 1
        self._under_way.pop(call_id, None)
        return Entry(self._seq, segment, offset, len(line), call_id)

    def settle(self, entries: Sequence[Entry]) -> None:
        """Note that calls are stored or given up."""
        if not entries:
            return
        for entry in entries:
            entry.segment.unsettled -= 1
        done = _ranges([entry.seq for entry in entries if entry.seq != UNREADABLE])
        self._append(done_line(done), always=True)
        for entry in entries:
            _blank(entry)

    def tidy(self, *, is_idle: bool) -> list[Segment]:
        """Let go of what is settled, oldest first, and empty the newest file when all in it is.

        Gives the segments for `remove`, which may take a moment and wants no lock.
        """
        gone: list[Segment] = []
        while len(self._segments) > 1 and self._segments[0].unsettled == 0:
            oldest = self._segments.popleft()
            # Long calls begin in one file and end in another one much later.
            for call_id, (segment, line) in list(self._under_way.items()):
                if segment is oldest and (moved := self._append(line, always=True)) is not None:
                    self._under_way[call_id] = (moved[0], line)
            self.size -= oldest.size
            gone.append(oldest)
        if len(self._segments) != 1 or self._under_way or self._segments[0].unsettled:
            return gone
        newest = self._segments[0]
        if newest.size and (is_idle or newest.size >= _WORTH_EMPTYING_BYTES):
            with contextlib.suppress(OSError):
                newest.write(bytes(newest.size), 0)
                self.size -= newest.size
                newest.size = newest.synced = 0
        return gone

    def remove(self, segments: Sequence[Segment]) -> None:
        """Delete segments that `tidy` let go of."""
        for segment in segments:
            with contextlib.suppress(OSError):
                segment.close()
                segment.path.unlink(missing_ok=True)

    def sync(self) -> None:
        """Bring what was written to the disk itself. May take as long as the disk likes."""
        for segment in list(self._segments):
            size = segment.size
            if segment.synced < size:
                with contextlib.suppress(OSError):  # closed meanwhile: all in it was settled
                    os.fsync(segment.handle)
                    segment.synced = size

    def broken(self) -> list[Segment]:
        """Files that somebody cut, moved or deleted. Asks the disk; sees to the lock as well."""
        if self._lock_handle is None:
            return []
        self._keep_lock(self._lock_handle)
        segments = list(self._segments)
        return [each for each in segments if each.room and not each.is_whole()]

    def mend(self, segment: Segment, lines: Mapping[Entry, bytes]) -> bool:
        """Make a broken file whole, and write the lines of these calls where they were. What else
        stood there is gone (`count`). False: it is one no more, or the disk refuses."""
        if segment not in self._segments:
            return False
        try:
            segment.renew()
            for entry, line in lines.items():
                segment.write(line, entry.offset)
        except OSError as error:
            logger.error("a file of the spool cannot be made whole: %s", error)
            # Nothing more is to go there, nor is this to be tried again all the time.
            segment.room = 0
            return False
        for call_id, (at, line) in list(self._under_way.items()):
            if at is segment and (moved := self._append(line, always=True)) is not None:
                self._under_way[call_id] = (moved[0], line)
        return True

    def expected(self, held: Collection[Entry]) -> dict[Segment, tuple[int, int]]:
        """How many calls wait in each file and nowhere else, and up to where that holds; `held`
        are those that are in memory."""
        here = Counter(entry.segment for entry in held)
        return {each: (each.unsettled - here[each], each.size) for each in self._segments}

    def count(
        self, start: Entry, expected: Mapping[Segment, tuple[int, int]]
    ) -> dict[Segment, int]:
        """How many of the calls that are expected from `start` on cannot be found."""
        missing: dict[Segment, int] = {}
        for segment, (calls, end) in expected.items():
            begin = start.offset if segment is start.segment else 0
            lines = segment.lines(begin, end) if segment.number >= start.segment.number else ()
            missing[segment] = calls - sum(line.startswith(CALL) for _, line in lines)
        return missing

    def give_up(self, missing: Mapping[Segment, int]) -> None:
        """Wait for so many calls of each file no more."""
        for segment, calls in missing.items():
            segment.unsettled -= calls

    def read(self, start: Entry, *, calls: int, size: int) -> Iterator[tuple[Entry, bytes]]:
        """The calls from `start` on: at most so many, of at most so many bytes (but one always).

        What is written while this runs may or may not be found.
        """
        taken = 0
        for segment in [s for s in list(self._segments) if s.number >= start.segment.number]:
            offset = start.offset if segment is start.segment else 0
            for at, line in segment.lines(offset, segment.size):
                if not line.startswith(CALL):
                    continue
                if taken and (calls <= 0 or size < len(line)):
                    return
                taken, calls, size = taken + 1, calls - 1, size - len(line)
                yield _entry(line, segment, at), line

    def close(self) -> None:
        """Leave the files to whoever starts next; delete those in which all is settled."""
        self.remove(self.tidy(is_idle=True))
        is_empty = not any(segment.size for segment in self._segments)
        self.sync()
        while self._segments:
            segment = self._segments.popleft()
            with contextlib.suppress(OSError):
                os.ftruncate(segment.handle, segment.size)
            segment.close()
            if is_empty:
                segment.path.unlink(missing_ok=True)
        self._spare.drop()
        self._under_way.clear()
        self.size = 0
        if self._lock_handle is not None:
            if is_empty:
                self._lock_path.unlink(missing_ok=True)
            os.close(self._lock_handle)
            self._lock_handle = None

    @property
    def _lock_path(self) -> Path:
        return self._directory / f"{self._name}.lock"

    def _keep_lock(self, handle: int) -> None:
        """Make a lock that was deleted anew: without one our files are taken for a dead one's."""
        with contextlib.suppress(OSError):
            own = os.fstat(handle)
            if self._lock_path.exists() and self._lock_path.stat().st_ino == own.st_ino:
                return
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            another = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # When the process began is told by it.
                os.utime(another, (own.st_mtime, own.st_mtime))
                os.dup2(another, handle, inheritable=False)
            finally:
                os.close(another)

    def _append(self, line: bytes, *, always: bool = False) -> tuple[Segment, int] | None:
        """Write one line; gives its place. `always`: also beyond the bound, for short notes."""
        if not always and self.size + self.foreign_size + len(line) > self._max_bytes:
            return None
        try:
            segment = self._current(len(line))
            self._put(line, segment)
        except OSError as error:
            if not self._is_failing:
                logger.error("the spool cannot be written: %s", error)
            self._is_failing = True
            return None
        self._is_failing = False
        offset = segment.size
        segment.size += len(line)
        self.size += len(line)
        return segment, offset

    def _put(self, line: bytes, segment: Segment) -> None:
        """Write at a file's end; one that refuses gets nothing more. Raises OSError."""
        try:
            segment.write(line, segment.size)
        except OSError:
            segment.room = segment.size
            raise

    def _current(self, size: int) -> Segment:
        """The segment that has room for so much; a new one where there is none. Raises OSError."""
        if self._segments and self._segments[-1].size + size <= self._segments[-1].room:
            return self._segments[-1]
        self.open()
        self._number += 1
        path = self._directory / f"{self._name}-{self._number:06d}.ndjson"
        try:
            segment = make_segment(self._number, path, max(self._segment_bytes, size))
        except OSError:
            spare = self._spare.take(self._number, path, size)
            if spare is None:
                raise
            segment = spare
        self._segments.append(segment)
        return segment


def _entry(line: bytes, segment: Segment, at: int) -> Entry:
    told = read_line(line)
    if not isinstance(told, Written):
        return Entry(UNREADABLE, segment, at, len(line) + 1, "")
    return Entry(told.seq, segment, at, len(line) + 1, str(told.capture.get("id", "")))


def _blank(entry: Entry) -> None:
    """A note that the call ended, and spaces, instead of its line."""
    note = end_line(entry.call_id)[:-1]
    line = note.ljust(entry.size - 1) + b"\n"
    if len(line) != entry.size:
        return  # a line of nothing but an id
    with contextlib.suppress(OSError):  # closed meanwhile: it is for the next start
        entry.segment.write(line, entry.offset)


def disk_problem(directory: Path) -> str | None:
    """Why no call could be written to the spool at this moment; None when one could. May take as
    long as the disk likes."""
    path = directory / f".probe-{os.getpid()}-{threading.get_ident()}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            reserve(handle, SEGMENT_BYTES)
        finally:
            os.close(handle)
            path.unlink()
    except OSError as error:
        return f"the disk takes no calls that have to wait: {os.strerror(error.errno or 0)}"
    return None


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """[1, 2, 3, 7] as [[1, 3], [7, 7]]."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
