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


class DamagedLines:
    """The file `spool/damaged`, which only its owner reads; full is full."""

    def __init__(self, directory: Path, *, max_bytes: int = _MOST_BYTES) -> None:
        self._path = directory / NAME
        self._max_bytes = max_bytes

    def keep(self, lines: Sequence[bytes]) -> bool:
        """Append lines, as far as there is room. False: the disk refuses, and nothing is kept."""
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                room = self._max_bytes - os.fstat(handle).st_size
                for line in lines:
                    if (room := room - len(line) - 1) < 0:
                        logger.warning("%s is full; further damaged lines are not kept", self._path)
                        break
                    os.write(handle, line + b"\n")
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            logger.error("damaged lines of the spool could not be kept: %s", error)
            return False
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
