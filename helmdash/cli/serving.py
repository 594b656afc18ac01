"""Where the server of a data directory is reached: commands run in other shells than it was started
from, whose PORT may be another."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helmdash import conf
from helmdash.cli.base_url import base_url

_NAME = "serving"
_MOST_BYTES = 4096


@contextmanager
def told_as_serving(env: conf.Env) -> Iterator[None]:
    """A block in which `running_url` of the same directory finds this server.

    One that serves from there already stays the one that is found. The word of a process that dies
    ends with it.
    """
    handle = _lock(env.data_dir / _NAME, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
    if handle is None:
        yield
        return
    try:
        os.ftruncate(handle, 0)
        os.write(handle, base_url(env).encode())
        yield
    finally:
        os.close(handle)


def running_url(env: conf.Env) -> str:
    """The address of the server that runs from this data directory, without a slash; where none
    does, or HELMDASH_PUBLIC_URL names one, what this shell's variables say."""
    own = base_url(env)
    return own if env.public_url else serving_at(env) or own


def serving_at(env: conf.Env) -> str | None:
    """What a server that runs from this data directory says of where it is reached; None: none does
    (or its file system has no locks)."""
    path = env.data_dir / _NAME
    if not path.is_file():
        return None
    handle = _lock(path, os.O_RDONLY, fcntl.LOCK_SH)
    if handle is not None:  # nobody holds it
        os.close(handle)
        return None
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace") or None


def _lock(path: Path, flags: int, kind: int) -> int | None:
    """A handle of the file that holds its lock; None where another process has it."""
    handle = os.open(path, flags, 0o600)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        pass  # a file system without such locks: nobody is found there
    return handle
