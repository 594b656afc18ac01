"""The files of a spool: how one is made, written and read, and made whole again.

Written with `pwrite`, never through a mapping: whoever cuts a mapped file from outside kills the
process at its next write (SIGBUS). And written without letting go of the interpreter, as a mapping
is: otherwise the thread that stores goes first, and every client of the gateway waits for it.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECE_BYTES = 1 << 18
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
# What a line is made of: nobody writes zeros, and they stand where a file was cut and grew again.
NO_ZEROS = re.compile(rb"[^\0]+")


def _pwrite() -> Callable[[int, bytes, int, int], int]:
    """The C library's `pwrite(file, bytes, size, offset)`, called as it is; gives -1 on a fault."""
    found = ctypes.PyDLL(None, use_errno=True).pwrite
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long)
    found.restype = ctypes.c_ssize_t
    return found


_pwrite_held = _pwrite()


@dataclass(slots=True, eq=False)
class Segment:
    """One file of this process; `room` bytes of the disk are its own."""

    number: int
    path: Path
    handle: int
    room: int
    size: int = 0
    """Bytes that were written."""
    synced: int = 0
    unsettled: int = 0
    """Calls in it that are neither stored nor given up."""

    def write(self, line: bytes, offset: int) -> None:
        """Put bytes at a place. Raises OSError, also where the file is closed."""
        while line:
            done = _pwrite_held(self.handle, line, len(line), offset)
            if done < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(self.path))
            # Less than all only where the disk is full, which the next round tells.
            line, offset = line[done:], offset + done

    def close(self) -> None:
        """Write no more. Another file may get the number of this one's handle."""
        handle, self.handle = self.handle, -1
        os.close(handle)

    def lines(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Whole lines of a part of the file, each with its place; zeros end a line as well."""
        rest, at = b"", start
        while start < end:
            piece = os.pread(self.handle, min(_PIECE_BYTES, end - start), start)
            if not piece:
                return
            start += len(piece)
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                for part in NO_ZEROS.finditer(line):
                    yield at + part.start(), part[0]
                at += len(line) + 1

    def is_whole(self) -> bool:
        """The file lies where it was made, with all the room that it was given."""
        try:
            own, there = os.fstat(self.handle), os.stat(self.path)
        except OSError:
            return False
        return own.st_ino == there.st_ino and own.st_size >= self.room

    def renew(self) -> None:
        """Give the file its room again, and where it is gone make another one with all that can be
        read of it. Raises OSError."""
        if not self._is_there():
            self._make_again()
        reserve(self.handle, self.room)
        self.synced = 0

    def _is_there(self) -> bool:
        try:
            return os.fstat(self.handle).st_ino == os.stat(self.path).st_ino
        except OSError:
            return False

    def _make_again(self) -> None:
        handle = os.open(self.path, _NEW, 0o600)
        try:
            for at in range(0, self.size, _PIECE_BYTES):
                piece = os.pread(self.handle, min(_PIECE_BYTES, self.size - at), at)
                os.pwrite(handle, piece, at)
            # Under the same number: who reads it at this moment reads on.
            os.dup2(handle, self.handle, inheritable=False)
        finally:
            os.close(handle)


def make_segment(number: int, path: Path, room: int) -> Segment:
    """A new file with so much room. Raises OSError."""
    handle = os.open(path, _NEW, 0o600)
    try:
        reserve(handle, room)
    except OSError:
        os.close(handle)
        path.unlink(missing_ok=True)
        raise
    return Segment(number, path, handle, room)


def reserve(handle: int, size: int) -> None:
    """Give a file its blocks now, so that a full disk is noticed before a call is to be written.
    What stands in them stays. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    begin = os.fstat(handle).st_size  # macOS
    while begin < size:
        begin += os.pwrite(handle, bytes(min(size - begin, 1 << 20)), begin)
