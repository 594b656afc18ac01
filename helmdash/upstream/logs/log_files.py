"""Files of lines, one a day and numbered beyond a size: `ollama-2026-03-01.jsonl`, `….1.jsonl`.

For their owner only. Many processes may append to them: each line is whole, since it is written by
one call to a file that is open for appending.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path

_NAME = "ollama-{day}{number}.jsonl"
_PATTERN = re.compile(r"ollama-(\d{4}-\d\d-\d\d)(?:\.(\d+))?\.jsonl")
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


class DayFiles:
    """The files of one directory. Used by one thread at a time; keeps one of them open."""

    def __init__(self, directory: Path, *, keep_days: int, max_bytes: int) -> None:
        self._directory = directory
        self._keep_days = keep_days
        self._max_bytes = max_bytes
        self._handle: int | None = None
        self._day: date | None = None
        self._number = 0
        self._is_mid_line = False

    def append(self, lines: Sequence[tuple[datetime, bytes]]) -> Iterator[int]:
        """Append lines to the files of their days (UTC); gives how many were written, in steps.

        Raises OSError where it stops; what was given until then is in a file.
        """
        if self._handle is not None and self._is_gone():
            self.close()
        for day, group in groupby(lines, key=lambda line: line[0].astimezone(UTC).date()):
            for _, line in group:
                self._make_room(day, len(line))
                self._write(line)
                yield 1

    def close(self) -> None:
        """Ends the file of the day; the next line opens it again."""
        handle, self._handle = self._handle, None
        self._is_mid_line = False
        if handle is not None:
            with suppress(OSError):
                os.close(handle)

    def _write(self, line: bytes) -> None:
        assert self._handle is not None
        # A write that stopped in the middle of a line is ended here; the line then comes whole.
        data = b"\n" + line if self._is_mid_line else line
        written = os.write(self._handle, data)
        if written < len(data):
            self._is_mid_line = True
            raise OSError("only a part of a line could be written")
        self._is_mid_line = False

    def _make_room(self, day: date, size: int) -> None:
        """See to it that the open file is the one that a line of this day and size belongs in."""
        if self._handle is None or day != self._day:
            self._open(day, self._newest(day))
        assert self._handle is not None
        while (has := os.fstat(self._handle).st_size) and has + size > self._max_bytes:
            self._open(day, self._number + 1)

    def _is_gone(self) -> bool:
        """Whether somebody has moved or deleted the open file."""
        assert self._handle is not None
        assert self._day is not None
        try:
            there = os.stat(self._path(self._day, self._number), follow_symlinks=False)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != _identity(self._handle)

    def _open(self, day: date, number: int) -> None:
        self.close()
        self._make_directory()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self._path(day, number), flags, _FILE_MODE)
        with suppress(OSError):
            os.fchmod(handle, _FILE_MODE)
        is_new_day = day != self._day
        self._handle, self._day, self._number = handle, day, number
        if is_new_day:
            prune(self._directory, today=day, keep_days=self._keep_days)

    def _make_directory(self) -> None:
        if self._directory.is_dir():
            return
        # Its parents, too: mkdir gives its mode to the last one only.
        self._directory.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        self._directory.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
        self._directory.chmod(_DIRECTORY_MODE)

    def _newest(self, day: date) -> int:
        """The highest number there is of a day; 0 is the file without one."""
        return max((number for _, at, number in _listed(self._directory) if at == day), default=0)

    def _path(self, day: date, number: int) -> Path:
        numbered = f".{number}" if number else ""
        return self._directory / _NAME.format(day=day.isoformat(), number=numbered)


def prune(directory: Path, *, today: date, keep_days: int) -> int:
    """Delete the files of days that are longer ago than `keep_days`; gives how many. Never raises.

    Their names tell the day: nothing else in the directory is touched.
    """
    oldest = today - timedelta(days=keep_days)
    gone = 0
    for path, day, _ in _listed(directory):
        if day <= oldest:
            with suppress(OSError):
                path.unlink()
                gone += 1
    return gone


def _listed(directory: Path) -> list[tuple[Path, date, int]]:
    found = []
    with suppress(OSError):
        for path in directory.iterdir():
            match = _PATTERN.fullmatch(path.name)
            if match is None:
                continue
            with suppress(ValueError):  # a day that no calendar has
                found.append((path, date.fromisoformat(match[1]), int(match[2] or 0)))
    return found


def _identity(handle: int) -> tuple[int, int]:
    stat = os.fstat(handle)
    return (stat.st_dev, stat.st_ino)
