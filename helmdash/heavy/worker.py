"""The worker process: started by the first who needs it, and ended when nobody did for a while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

from helmdash import conf

log = logging.getLogger(__name__)

# It holds some 100 MiB; a team whose agents send heavy requests sends more than one in ten minutes.
_IDLE_S = 600.0
# After it was asked to end: what it waits for by itself, and a little.
_END_S = 20.0
# One that ended by itself is started again at once the first time, for it may have left calls in
# its spool; then later and later.
_AGAIN_S = (0.5, 5.0, 60.0)


class Worker:
    """One process and the socket that it listens on. Used on one event loop."""

    def __init__(self, app: str) -> None:
        """`app`: where the application is, as "module:name"."""
        self._app = app
        self._folder: Path | None = None
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._starting: asyncio.Lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._restart: asyncio.TimerHandle | None = None
        self._falls = 0
        self._users = 0
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Whether there is a process at this moment."""
        return self._process is not None and self._process.returncode is None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, to a process that is started if there is none. Raises OSError.

        While it starts, what is sent waits in the socket. `release` gives the connection back.
        """
        await self._ensure()
        assert self._folder is not None
        reader, writer = await asyncio.open_unix_connection(str(self._folder / "socket"))
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        return reader, writer

    def release(self, writer: asyncio.StreamWriter, *, is_good: bool) -> None:
        """Give a connection back. `is_good`: it gave a whole answer."""
        writer.close()
        self._users -= 1
        if is_good:
            self._falls = 0
        if self._users == 0 and self.is_running and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(_IDLE_S, self._let_go)

    async def gone(self) -> None:
        """Wait until the process has ended."""
        if self._watcher is not None:
            await asyncio.shield(self._watcher)

    async def stop(self) -> None:
        """Let it finish what it does and end; by force if that takes too long."""
        self._is_closed = True
        for timer in (self._idle, self._restart):
            if timer is not None:
                timer.cancel()
        watcher = self._watcher
        self._let_go()
        if watcher is not None:
            await asyncio.wait([watcher], timeout=_END_S)
            if not watcher.done() and self._process is not None:
                log.warning("the worker for large requests did not end in time")
                self._process.kill()
                await watcher
        self._close_socket()

    async def _ensure(self) -> None:
        async with self._starting:
            if self._is_closed:
                raise OSError("the server is stopping")
            if not self.is_running:
                self._start()

    def _start(self) -> None:
        listener = self._listener or self._listen()
        command = [sys.executable, "-m", "helmdash.heavy", str(listener.fileno()), self._app]
        # Not by the event loop: in the fork that becomes the worker, uvloop has Python let go of
        # what the other threads had. One of them may have held a lock at that moment (SQLite's own,
        # while it writes); the fork then waits for it for ever, and the loop for the fork. Popen
        # runs no Python there. It takes some milliseconds, as uvloop did.
        self._process = process = subprocess.Popen(  # noqa: S603
            command,
            # Its end is the worker's end, also where this process is killed.
            stdin=subprocess.PIPE,
            pass_fds=(listener.fileno(),),
            # Ctrl-C in a terminal reaches this process only, which then ends the worker in order.
            start_new_session=True,
            env=_environment(),
        )
        self._watcher = asyncio.get_running_loop().create_task(self._watch(process))

    def _listen(self) -> socket.socket:
        # A path of a hundred characters is all that a socket's address holds: not the data folder.
        self._folder = Path(tempfile.mkdtemp(prefix="helmdash-"))
        self._listener = listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._folder / "socket"))
        os.chmod(self._folder / "socket", 0o600)
        listener.listen(128)
        return listener

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        code = await _ended(process)
        if process.stdin is not None:
            process.stdin.close()
        if self._process is not process:
            return  # it was let go, and another one may work by now
        self._process = None
        if self._is_closed:
            return
        log.error("the worker for large requests has ended by itself (%s)", code)
        again = _AGAIN_S[min(self._falls, len(_AGAIN_S) - 1)]
        self._falls += 1
        self._restart = asyncio.get_running_loop().call_later(again, self._start_again)

    def _start_again(self) -> None:
        self._restart = None
        task = asyncio.get_running_loop().create_task(self._ensure_quietly())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _ensure_quietly(self) -> None:
        with contextlib.suppress(OSError):
            await self._ensure()
        if self._users == 0 and self.is_running:
            self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._let_go)

    def _let_go(self) -> None:
        """Ask it to end; a request that comes from now on starts another one."""
        process = self._process
        self._idle = None
        if not self._is_closed:
            self._process = None
            self._close_socket()  # the next process is to have one of its own
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def _close_socket(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._listener = self._folder = None


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended; its exit code. A thread waits, which ends with it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def tell(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = process.wait()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, code)

    Thread(target=wait, name="worker-end", daemon=True).start()
    return await ended


def _environment() -> dict[str, str]:
    """This process's, but for the writer process: what takes long to store is to keep nobody's
    calls waiting there."""
    kept = {name: value for name, value in os.environ.items() if name != conf.WRITER_SOCKET}
    return {**kept, "PYTHONPATH": os.pathsep.join(_paths())}


def _paths() -> list[str]:
    """Where the worker finds the package: where this one did."""
    own = str(Path(__file__).resolve().parents[2])
    return [own, *filter(None, [os.environ.get("PYTHONPATH")])]
