"""Starting the writer process, for the first server process that asks for it, and again when it
has ended."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from helmdash import conf

log = logging.getLogger(__name__)

# What it is storing when it is asked to end, and a little.
_END_SECONDS = 10.0
# One that ends by itself is started again, soon the first time, then later and later; a thread of
# each server process stores meanwhile.
_AGAIN_SECONDS = (0.2, 2.0, 20.0)
# From its start to its first sign of life, which needs Python's own start only (0.05 s of a core);
# and from one to the next, which come each second. It is ended by force after that: its transaction
# is rolled back, so the servers' threads can store what it was handed.
_START_SECONDS = 20.0
_SILENT_SECONDS = 10.0
# Who has worked for so long has not ended for what ended it at its start.
_WELL_SECONDS = 60.0


@contextlib.contextmanager
def writer_process() -> Iterator[None]:
    """A block in which a writer process is started when it is asked for; it ends with the block.

    Where there is no room for its socket there is none, and server processes store by themselves.
    """
    try:
        keeper = WriterKeeper()
    except OSError as error:
        log.error("there can be no writer process: %s", error)
        yield
        return
    keeper.start()
    conf.name_writer_socket(keeper.path)
    try:
        yield
    finally:
        conf.name_writer_socket("")
        keeper.stop()


class WriterKeeper:
    """Holds the socket that server processes connect to, and starts who answers there."""

    def __init__(self) -> None:
        # A path of a hundred characters is all that a socket's address holds: not the data folder.
        self._folder = Path(tempfile.mkdtemp(prefix="helmdash-"))
        self.path = str(self._folder / "writer")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listener.listen(128)
        self._end = threading.Event()
        self._wake, self._woken = os.pipe()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="writer-keeper", daemon=True)

    def start(self) -> None:
        """Begin to listen. Starts nothing before somebody asks."""
        self._thread.start()

    def stop(self) -> None:
        """Let the process store what it was handed, and end; by force if that takes too long."""
        self._end.set()
        os.close(self._woken)
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                log.warning("the writer process did not end in time")
                process.kill()
        self._thread.join(1.0)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self) -> None:
        falls = 0
        while self._is_asked_for():
            began = time.monotonic()
            code = self._run()
            if self._end.is_set():
                break
            if time.monotonic() - began >= _WELL_SECONDS:
                falls = 0
            pause = _AGAIN_SECONDS[min(falls, len(_AGAIN_SECONDS) - 1)]
            log.error(
                "the writer process has ended by itself (%s); server processes store, and start "
                "another one after %s s",
                code,
                pause,
            )
            self._end.wait(pause)
            falls += 1
        os.close(self._wake)

    def _is_asked_for(self) -> bool:
        """Wait for a connection that nobody has taken; False when it is time to stop."""
        select.select([self._listener.fileno(), self._wake], [], [])
        return not self._end.is_set()

    def _run(self) -> int | None:
        """Start the process and wait for its end; its exit code. None: it could not be started."""
        # Popen runs no Python in the fork: there another thread's lock would never be let go.
        try:
            self._process = process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "helmdash.cli.writer", str(self._listener.fileno())],
                # Its end is the process's end, also where this one is killed.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(self._listener.fileno(),),
                # Ctrl-C in a terminal reaches the server, which then ends this one in order.
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(_paths()),
                    # One heap for all threads: each of its own would keep what it needed most.
                    "MALLOC_ARENA_MAX": "1",
                },
            )
        except OSError as error:
            log.error("the writer process cannot be started: %s", error)
            return None
        with process:
            self._watch(process)
        return process.returncode

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until it ends, or end it where it shows no sign of life: stopped, or stuck."""
        assert process.stdout is not None
        beats = process.stdout.fileno()
        # select() takes no numbers over a thousand, and a server has as many connections.
        waiting = select.poll()
        waiting.register(beats, select.POLLIN)
        patience = _START_SECONDS
        while waiting.poll(patience * 1000) or self._end.is_set():
            if not os.read(beats, 4096):
                return
            patience = _SILENT_SECONDS
        log.error("the writer process shows no sign of life and is ended by force")
        process.kill()


def _paths() -> list[str]:
    """Where the process finds the package: where this one did."""
    own = str(Path(__file__).resolve().parents[3])
    return [own, *filter(None, [os.environ.get("PYTHONPATH")])]
