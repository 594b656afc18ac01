"""Files of the spool that stay, since something in them cannot be read: whose, and why.

Whoever takes over the files of a process that has ended writes the reason into that process's lock.
There every process of the host finds it, and `doctor` where none runs, until a later start gets
through (`orphaned_segments`).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

# A reason is a sentence with a path in it.
_MOST_BYTES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckFiles:
    """What one process has left, by its name; why: with a path, for those who run the server."""

    process: str
    why: str


def note_stuck(lock_handle: int, why: str) -> None:
    """Write into a lock that is held why its files stay; "": they do not, any more.

    When its process began is told by the time of the lock, which is kept. What a disk refuses is in
    the log alone.
    """
    with contextlib.suppress(OSError):
        before = os.fstat(lock_handle)
        if not why and not before.st_size:
            return
        os.ftruncate(lock_handle, 0)
        os.pwrite(lock_handle, f"{why}\n".encode(errors="replace") if why else b"", 0)
        os.utime(lock_handle, ns=(before.st_atime_ns, before.st_mtime_ns))


def stuck_files(directory: Path) -> tuple[StuckFiles, ...]:
    """Those in a spool, by name. Asks the disk, which may take its time."""
    found = ((lock, _why(lock)) for lock in sorted(directory.glob("*.lock")))
    return tuple(StuckFiles(process=lock.stem, why=why) for lock, why in found if why)


def _why(lock: Path) -> str:
    try:
        # One of another user's, who once ran a server or a command here, stays as well.
        handle = os.open(lock, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)
    try:
        return os.read(handle, _MOST_BYTES).decode(errors="replace").strip()
    except OSError as error:
        return str(error)
    finally:
        os.close(handle)
