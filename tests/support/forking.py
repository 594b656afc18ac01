"""A fork server: processes of HelmDash that need not load Python's packages and its own anew.

Nine tenths of the CPU time of a start go into modules that look at no setting, and a run of the
suite starts more than a hundred servers. So the workers of a run share one process that has loaded
these: four seconds of CPU. Asked to, it forks, and the fork does from there on what `python
ARGUMENTS` would: in a session of its own, with an environment of its own, reading its settings
first. First starts (tests/server) are made without it, as people make them.

`python -m tests.support.forking FD DIRECTORY` is that process: FD is the socket it listens on, a
file of the run's directory. Whoever first asks starts it, and it ends with its last client.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support import ROOT
from tests.support.warm import be_another_process, load_helmdash

# Forking what has loaded macOS's own libraries is not safe.
WORKS_HERE = sys.platform == "linux"
_POLL_SECONDS = 0.01
# Of the socket, in the run's directory, which is its owner's alone.
_NAME = "fork-server"
# What a server loads, as far as it looks at no setting of Django's. What is not here, or is no
# longer used, costs time only.
_LOADED = """
    aiohttp asgiref.sync cryptography.fernet dj_database_url helmdash.conf helmdash.upstream.client
    httptools httpx json_repair jsonschema orjson prometheus_client psycopg psycopg_pool
    servestatic.asgi sniffio tablib.formats uvicorn uvicorn.lifespan.on uvicorn.logging
    uvicorn.loops.uvloop uvicorn.protocols.http.httptools_impl uvloop
    django.contrib.admin django.contrib.staticfiles.storage
    django.core.asgi django.core.cache.backends.locmem django.core.management.commands.migrate
    django.db.migrations.executor django.db.models django.forms django.template.loader_tags
    django.test django.urls django.views.generic import_export.resources sqlite3 sqlparse
""".split()


class Forked:
    """A process of the fork server's, with the face of subprocess.Popen."""

    def __init__(self, server: _ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, once it has ended; minus the signal that ended it."""
        if self.returncode is None:
            self.returncode = self._server.ask(poll=self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; gives its exit code. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(_POLL_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def fork_python(
    *arguments: str, env: Mapping[str, str] | None, stdout: Path, stderr: Path | None = None
) -> Forked:
    """Do what `python ARGUMENTS` does (a script, -m or -c), from the checkout; prints to the files.

    stderr None: to the same file. env None: this process's.
    """
    server = _fork_server()
    pid = server.ask(
        arguments=arguments,
        env=dict(os.environ if env is None else env),
        files=[str(stdout), str(stderr or stdout)],
    )
    assert pid is not None
    return Forked(server, pid)


class _ForkServer:
    """This worker's end. An ended process stays a zombie, and its pid its own, until polled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        directory = Path(os.environ["HELMDASH_DATA_DIR"])
        with _one_at_a_time(directory):
            connection = _connect(directory)
            if connection is None:
                self._process = _start(directory)
                connection = _connect(directory)
        assert connection is not None
        self._lines = connection.makefile("rw", encoding="utf-8")
        connection.close()

    def ask(self, **request: Any) -> int | None:
        """Its answer to a request. Raises RuntimeError when it is gone."""
        with self._lock:
            self._lines.write(json.dumps(request) + "\n")
            self._lines.flush()
            line = self._lines.readline()
        if not line:
            raise RuntimeError("the fork server has ended")
        answer: int | None = json.loads(line)
        return answer

    def close(self) -> None:
        """Let it end, if nobody else asks it anything; its forks go on."""
        self._lines.close()
        if self._process is not None:
            self._process.wait()


@contextlib.contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """So that no two of a run start one, and none ends as somebody connects."""
    with (directory / f"{_NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _address(directory: Path) -> Iterator[str]:
    """The socket's own path may be longer than a socket's may be."""
    handle = os.open(directory, os.O_PATH)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)


def _connect(directory: Path) -> socket.socket | None:
    """A connection to the run's server; None when it has none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _address(directory) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _start(directory: Path) -> subprocess.Popen[bytes]:
    (directory / _NAME).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        with _address(directory) as address:
            listening.bind(address)
        listening.listen()
        handle = listening.fileno()
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.support.forking", str(handle), str(directory)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[handle],
        )


@cache
def _fork_server() -> _ForkServer:
    server = _ForkServer()
    # Where this process is killed, it ends all the same: its socket closes.
    atexit.register(server.close)
    return server


def main() -> None:
    """Serve until the last client has gone; in a fork, do what was asked for."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    _load()
    request = _fork_when_asked(listening, Path(sys.argv[2]))
    if request is not None:
        _become(request)
        _run(request["arguments"])


def _load() -> None:
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            import_module(name)
    from django.conf import settings

    load_helmdash()
    assert not settings.configured, "settings are each server's own"
    # Shared with the forks as long as nobody writes to it.
    gc.collect()
    gc.freeze()


def _fork_when_asked(listening: socket.socket, directory: Path) -> dict[str, Any] | None:
    """In a fork its request, in the server itself None when nobody is left to ask."""
    with selectors.PollSelector() as clients, listening:
        clients.register(listening, selectors.EVENT_READ)
        _accept(listening, clients)
        while len(clients.get_map()) > 1 or _one_more(clients, directory):
            for key, _ in clients.select():
                if key.fileobj is listening:
                    _accept(listening, clients)
                elif (request := _answer(key, clients)) is not None:
                    for each in clients.get_map().values():
                        _close(each)
                    return request
    return None


def _accept(listening: socket.socket, clients: selectors.BaseSelector) -> None:
    connection, _ = listening.accept()
    clients.register(connection, selectors.EVENT_READ, connection.makefile("rw", encoding="utf-8"))


def _one_more(clients: selectors.BaseSelector, directory: Path) -> bool:
    """Whether somebody has connected as the last client went; from now on nobody can, if not."""
    if not directory.exists():
        return False  # a run that was over as its last process went
    with _one_at_a_time(directory):
        if clients.select(0):
            return True
        (directory / _NAME).unlink()
        return False


def _answer(
    client: selectors.SelectorKey, clients: selectors.BaseSelector
) -> dict[str, Any] | None:
    """Do what a client asks for; gives its request in the fork that it asked for."""
    lines = client.data
    line = lines.readline()
    if not line:
        clients.unregister(client.fileobj)
        _close(client)
        return None
    request: dict[str, Any] = json.loads(line)
    answer = _exit_code(request["poll"]) if "poll" in request else _fork()
    if answer == 0 and "poll" not in request:
        return request
    with contextlib.suppress(OSError):
        lines.write(json.dumps(answer) + "\n")
        lines.flush()
    return None


def _close(client: selectors.SelectorKey) -> None:
    if client.data is not None:
        client.data.close()
    client.fileobj.close()  # type: ignore[union-attr]


def _fork() -> int:
    """Fork; returns once the fork leads a process group, which those that end it count on."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(reading)
    os.close(writing)
    if pid:
        os.read(reading, 1)
        os.close(reading)
    return pid


def _exit_code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(request: dict[str, Any]) -> None:
    # Standard input is the server's own: nothing.
    for target, file in enumerate(request["files"], start=1):
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(handle, target)
        os.close(handle)
    os.environ.clear()
    os.environ.update(request["env"])
    # As at a terminal, also where the whole run goes on without one (`nohup`).
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    be_another_process()


def _run(arguments: list[str]) -> None:
    match arguments:
        case ["-m", name, *_]:
            sys.argv = arguments[1:]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case ["-c", code, *_]:
            sys.argv = ["-c", *arguments[2:]]
            own = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), own.__dict__)
        case _:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
