"""Room on the disk that is kept back: a file of the spool for when the disk takes no other.

Reserved while there is room. On a disk that is full what is left of calls is written there without
their texts, a line of one or two kB each, so that those that are under way by then are safe.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from helmdash.operations.recorder.files.segments import Segment, make_segment

SUFFIX = ".spare"
# Longer lines would soon have all of it.
_SHARE = 16


class Spare:
    """One file of the spool that nothing is written to yet. Not thread-safe by itself."""

    def __init__(self, path: Path, room: int) -> None:
        self._path = path
        self._room = room
        self._file: Segment | None = None
        self._was_refused = False

    @property
    def is_there(self) -> bool:
        """It can be taken."""
        return self._file is not None

    @property
    def is_missing(self) -> bool:
        """The disk had no room for it when it was asked last."""
        return self._was_refused

    def keep(self) -> None:
        """Make it where it is not there, or was cut or deleted by somebody. Asks the disk."""
        if self._file is not None and self._file.is_whole():
            return
        self.drop()
        try:
            self._file = make_segment(0, self._path, self._room)
        except OSError:
            self._was_refused = True
        else:
            self._was_refused = False

    def take(self, number: int, path: Path, size: int) -> Segment | None:
        """The file, under this number and name, for a line of such a size; None: there is none, or
        the line is too long for it."""
        file = self._file
        if file is None or size > self._room // _SHARE:
            return None
        try:
            os.rename(self._path, path)
        except OSError:
            self.drop()
            return None
        self._file = None
        self._was_refused = True
        file.number, file.path = number, path
        return file

    def drop(self) -> None:
        """Give the room back."""
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._file.close()
            self._path.unlink(missing_ok=True)
        self._file = None
