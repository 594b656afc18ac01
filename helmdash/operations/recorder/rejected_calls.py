"""Calls that no database would store, kept for whoever wants to know why."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.withheld import without_words
from helmdash.operations.recorder.capture_json import bare_capture, dump_capture
from helmdash.operations.recorder.files.units import Unit
from helmdash.operations.recorder.kept_texts import as_kept
from helmdash.records.models import Payload

logger = logging.getLogger(__name__)

# Room for thousands of calls; a fault that hits every call must not fill the disk.
_MOST_BYTES = 16 * 1024 * 1024
# A fault that hits every call must not fill the log either.
_QUIET_SECONDS = 10.0


class RejectedCalls:
    """A file that only its owner reads; full is full."""

    def __init__(self, path: Path, *, max_bytes: int = _MOST_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._unsaid = 0
        self._said_at = -_QUIET_SECONDS

    def keep(self, unit: Unit, *, why: str) -> None:
        """Append the calls of a unit, and say so in the log; never raises."""
        self._unsaid += len(unit.captures)
        moment = time.monotonic()
        if moment - self._said_at >= _QUIET_SECONDS:
            logger.warning("%d calls cannot be stored and were put aside: %s", self._unsaid, why)
            self._unsaid, self._said_at = 0, moment
        lines = b"".join(
            b'{"why":%s,"project":%d,"capture":%s}\n'
            % (orjson.dumps(why), unit.project_id, dump_capture(capture)[1])
            for capture in _kept(unit)
        )
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.fstat(handle).st_size + len(lines) <= self._max_bytes:
                    os.write(handle, lines)
            finally:
                os.close(handle)
        except OSError as error:
            logger.error("a rejected call could not be kept: %s", error)

    def forget(self, *, project_id: int, conversation: str) -> int:
        """Drop the calls that name a conversation; how many those were. Raises OSError.

        In place and under a lock, for other processes append to the same file.
        """
        try:
            handle = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return 0
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.readlines()
            kept = [line for line in lines if not _is_of(line, project_id, conversation)]
            if len(kept) < len(lines):
                file.seek(0)
                file.writelines(kept)
                file.truncate()
            return len(lines) - len(kept)


def _is_of(line: bytes, project_id: int, conversation: str) -> bool:
    try:
        told = orjson.loads(line)
        return bool(
            told["project"] == project_id and told["capture"].get("conversation") == conversation
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return False


def _kept(unit: Unit) -> Iterator[Capture]:
    """The calls with as much of their texts as their project keeps; a project that is gone keeps
    none."""
    project = unit.project
    for capture in unit.captures:
        if project is None or project.payload == Payload.OFF.value:
            yield bare_capture(without_words(capture), why="this project keeps no texts")
        else:
            yield as_kept(capture, project)
