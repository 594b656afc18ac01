"""Lines of a spool that cannot be read: put aside for whoever wants to look at them, never deleted
with the file they stood in, and never booked as calls."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

NAME = "damaged"
# Far more than a crash leaves; a disk that fails must not be filled by what it spoilt.
_MOST_BYTES = 16 * 1024 * 1024
_KEPT = "%d lines of the spool cannot be read; they are kept in the file `damaged` beside it"
_CUT = (
    "%d lines of the spool cannot be read; the file `damaged` beside it had room for %d of them, "
    "and for a part of the next"
)


class DamagedLines:
    """The file `spool/damaged`, which only its owner reads; full is full."""

    def __init__(self, directory: Path, *, max_bytes: int = _MOST_BYTES) -> None:
        self._path = directory / NAME
        self._max_bytes = max_bytes

    @property
    def most_bytes(self) -> int:
        """What there is room for at most."""
        return self._max_bytes

    def keep(self, lines: Sequence[bytes]) -> bool:
        """Append lines, as far as there is room, and say so in the log. The first that has none is
        kept as far as it goes. False: the disk refuses, and nothing is kept."""
        whole = 0
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                room = self._max_bytes - os.fstat(handle).st_size
                for line in lines:
                    if room <= 1:
                        break
                    _write(handle, line[: room - 1] + b"\n")
                    room -= len(line) + 1
                    whole += room >= 0
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            logger.error("damaged lines of the spool could not be kept: %s", error)
            return False
        _tell(len(lines), whole)
        return True

    def forget(self, name: str) -> int:
        """Drop the lines that hold a conversation's name; how many those were. Raises OSError.

        What else a damaged line says cannot be read. In place and under a lock, as above.
        """
        try:
            handle = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return 0
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.readlines()
            kept = [line for line in lines if b'"%s"' % name.encode() not in line]
            if len(kept) < len(lines):
                file.seek(0)
                file.writelines(kept)
                file.truncate()
            return len(lines) - len(kept)


def _write(handle: int, line: bytes) -> None:
    while line:
        line = line[os.write(handle, line) :]


def _tell(lines: int, whole: int) -> None:
    if whole == lines:
        logger.warning(_KEPT, lines)
    else:
        logger.warning(_CUT, lines, whole)
