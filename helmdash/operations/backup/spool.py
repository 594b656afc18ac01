"""The spool in a backup: copied as it is, before the database.

In this order nothing that was accepted before the backup began can be missing: what had left the
spool by then is in the database, and what was in both is known again by its id. The other way
round, a call that moves from the one to the other in between would be in neither.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

# A segment is emptied in well under a millisecond: a second reading that is no continuation of the
# first one is rare, and a third one then settles it.
_READINGS = 20


def copied(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the spool as (name below it, its bytes), without what is half written.

    A file that is gone by the time it is read held nothing but what is stored.
    """
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        body = _whole(path)
        if body is not None:
            yield path.relative_to(directory).as_posix(), body


def is_in_use(directory: Path) -> bool:
    """Whether some process that lives has its calls there."""
    return any(_is_locked(lock) for lock in directory.glob("*.lock"))


def _whole(path: Path) -> bytes | None:
    """What was written in a file, up to the end of a line; None when it is gone.

    A segment grows at its end while it is read, and is overwritten with zeros once all in it is
    stored: two readings, of which the second continues the first, saw no such thing half done.
    """
    before: bytes | None = None
    for _ in range(_READINGS):
        try:
            body = path.read_bytes().rstrip(b"\0")
        except FileNotFoundError:
            return None
        if before is not None and body.startswith(before):
            return before[: before.rfind(b"\n") + 1]
        before = body
    return before


def _is_locked(lock: Path) -> bool:
    with contextlib.suppress(OSError):
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
    return False
