"""Which files were sent as they are now, so that a second run need not open them.

Lies in the platform's own folder for the state of programs, never in an agent's. Losing it costs
time alone: calls have stable ids.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# One run's files of some years; the oldest entries go beyond that.
_MOST_FILES = 100_000


@dataclass(frozen=True)
class Stamp:
    """What a file looks like from outside: it is read again when one of them differs."""

    size: int
    changed_ns: int


class SentFiles:
    """The files that a receiver has. path None: nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._stamps: dict[str, list[int]] = {}
        self._is_kept = True
        if path is not None:
            self._stamps = _read(path)

    def knows(self, path: Path, stamp: Stamp) -> bool:
        """Whether the file was sent as it is."""
        return self._stamps.get(str(path)) == [stamp.size, stamp.changed_ns]

    def note(self, path: Path, stamp: Stamp) -> None:
        """Everything of the file is stored."""
        self._stamps.pop(str(path), None)
        self._stamps[str(path)] = [stamp.size, stamp.changed_ns]
        self._is_kept = False

    def save(self) -> None:
        """Keep it for the next run, as well as it goes: without it the next one reads more."""
        if self._path is None or self._is_kept:
            return
        newest = dict(list(self._stamps.items())[-_MOST_FILES:])
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=str(self._path.parent))
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(newest, stream)
            os.replace(name, self._path)
            self._is_kept = True
        except OSError:
            return


def stamp_of(path: Path) -> Stamp | None:
    """How a file looks; None where it is gone or not to be asked. What SQLite has written beside a
    database, and not into it yet, is a part of it."""
    try:
        states = [os.lstat(path)]
    except OSError:
        return None
    if path.suffix == ".db":
        with contextlib.suppress(OSError):
            states.append(os.lstat(f"{path}-wal"))
    return Stamp(
        size=sum(state.st_size for state in states),
        changed_ns=max(state.st_mtime_ns for state in states),
    )


def state_file(receiver: str, *, system: str, home: Path, variables: Mapping[str, str]) -> Path:
    """Where the files that a receiver has are kept: below the platform's folder for state."""
    if system == "darwin":
        folder = home / "Library" / "Application Support"
    elif system == "win32":
        folder = Path(variables.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        folder = Path(variables.get("XDG_STATE_HOME") or home / ".local" / "state")
    digest = hashlib.sha256(receiver.encode()).hexdigest()[:16]
    return folder / "helmdash" / f"sent-{digest}.json"


def _read(path: Path) -> dict[str, list[int]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
