"""`python -m helmdash.cli.writer FD`: store what server processes hand over on a listening socket,
and add it to the rollups.

Started by `helmdash.cli.writer.keeping`, and ended by it: in order when standard input closes, by
force when standard output shows no sign of life.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

# What it is storing when it is asked to end.
_DRAIN_SECONDS = 8.0
# A call drops its objects by itself, as in the server (helmdash.asgi).
_GARBAGE_AFTER = 50_000
# A sign of life goes to the keeper so often: several in the time that it waits for one.
_BEAT_SECONDS = 1.0
# What keeps a start for longer will not end: packages are read in single seconds, on a very busy
# machine in some ten.
_START_SECONDS = 60.0
# A thread that has had no answer from the database for so long is stuck, and with it a server: a
# lock is given up after ten seconds, a PostgreSQL that vanished without a word after twenty.
_STUCK_SECONDS = 30.0


def main() -> None:
    """Serve until standard input closes."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Sent to all processes of a service at once: the server ends this one in order.
        signal.signal(number, signal.SIG_IGN)
    from helmdash.cli.writer.time_slice import take_longest_time_slice

    # Before any thread starts: each has the slice of the one that starts it.
    take_longest_time_slice()
    # So that one that is stopped before it answers is told from one that has much to read.
    is_started = threading.Event()
    threading.Thread(
        target=beat_until_started, args=(is_started, sys.stdout.fileno()), name="start", daemon=True
    ).start()
    os.environ["DJANGO_SETTINGS_MODULE"] = "helmdash.settings_writer"
    import django

    django.setup()
    from django.utils import timezone

    from helmdash.operations.database.sqlite_file import hold_database_open, open_only_existing
    from helmdash.operations.database.timeouts import limit_lock_waits
    from helmdash.operations.jobs import folding
    from helmdash.operations.recorder.serving import WriterServer

    open_only_existing()
    limit_lock_waits()
    hold_database_open()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_AFTER, 10, 100)
    server = WriterServer(socket.socket(fileno=int(sys.argv[1])), clock=timezone.now, is_alone=True)
    threading.Thread(target=server.serve, name="accept", daemon=True).start()
    rollups = folding.writers_thread()
    rollups.start()
    is_started.set()
    beat_until_asked_to_end(
        sys.stdin.fileno(),
        sys.stdout.fileno(),
        is_well=lambda: server.silent_seconds() < _STUCK_SECONDS,
    )
    rollups.stop(0.0)  # between two steps; its lease is given back while the last calls are stored
    server.stop(_DRAIN_SECONDS)


def beat_until_started(
    is_started: threading.Event,
    told: int,
    *,
    seconds: float = _BEAT_SECONDS,
    most: float = _START_SECONDS,
) -> None:
    """Show signs of life on a pipe until `is_started`, for so many seconds at most."""
    end = time.monotonic() + most
    # A keeper that is gone is seen by the main thread.
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            os.write(told, b".")
            if is_started.wait(seconds):
                return


def beat_until_asked_to_end(
    asked: int, told: int, *, is_well: Callable[[], bool], seconds: float = _BEAT_SECONDS
) -> None:
    """Show signs of life on one pipe, `told`, until the other one closes.

    is_well: where it says no, none is shown. The keeper then ends this process by force, and the
    servers' own threads store what it was handed.
    """
    while True:
        if is_well():
            # A keeper that is gone has closed the other pipe as well.
            with contextlib.suppress(OSError):
                os.write(told, b".")
        if select.select([asked], [], [], seconds)[0] and not os.read(asked, 1024):
            return


if __name__ == "__main__":
    main()
