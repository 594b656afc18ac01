"""Storing what a server that has ended left in the spool, from a command beside no server."""

from __future__ import annotations

from helmdash.operations.recorder.facade import recorder, start, stop

_SECONDS = 60.0


def store() -> None:
    """Store all that processes which have ended left; nothing where there is no such thing.

    What belongs to a process that lives is its own, and stored by it.
    """
    if recorder().is_started or not recorder().has_leftovers():
        return
    start()
    recorder().settle(_SECONDS)
    stop()
