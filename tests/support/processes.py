"""Starting, awaiting and ending the processes of a test run.

Each is noted in a file of the run's own directory, so that the end of the run also ends what a
worker that was killed has left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from tests.support import ROOT, forking

# A first start makes its tables: 4 s of CPU, a minute where six others want the same core.
_START_SECONDS = 120
# Until one that will not end is made to, which its test then calls a failure: a server ends in a
# second of CPU, which may be more than 15 where many others want the same core.
_STOP_SECONDS = 60
_POLL_SECONDS = 0.05


class Process(Protocol):
    """A process that was started here; what subprocess.Popen and a fork have in common."""

    @property
    def pid(self) -> int:
        """It also leads a process group of this number."""

    @property
    def returncode(self) -> int | None:
        """As poll() last said."""

    def poll(self) -> int | None:
        """The exit code, once it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; gives its exit code. Raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, unless it has ended."""


# Systems give ports from 32768 (Linux) or 49152 on to whoever connects, and would give ours away in
# the seconds between its choice and the server that listens on it: a worker lacks a server then
# that hundreds of tests share.
_PORTS = range(20_000, 32_000)
# By process, for forks begin anew.
_next_ports: dict[int, Iterator[int]] = {}


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on just now, and another one each time.

    Each process begins elsewhere, so that two of them do not find the same one free.
    """
    process = os.getpid()
    if process not in _next_ports:
        _next_ports[process] = _ports_from(process)
    for port in islice(_next_ports[process], len(_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"none of the ports {_PORTS.start} to {_PORTS.stop - 1} is free")


def _ports_from(process: int) -> Iterator[int]:
    # Those that are started one after the other are a thousand ports apart.
    start = process * 1009 % len(_PORTS)
    return cycle(chain(_PORTS[start:], _PORTS[:start]))


def spawn_python(
    *arguments: str, log: Path, env: Mapping[str, str] | None = None, forked: bool = False
) -> Process:
    """Start this Python in the checkout, in a process group of its own; it prints to `log`.

    forked: it need not load all anew, where that works (tests/support/forking.py).
    """
    if not forked or not forking.WORKS_HERE:
        return spawn(sys.executable, *arguments, cwd=ROOT, log=log, env=env)
    process = forking.fork_python(*arguments, env=env, stdout=log)
    _note(process.pid).touch()
    return process


def spawn(
    *command: str, cwd: Path, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own; it prints to `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _note(process.pid).touch()
    return process


def run_python(
    *arguments: str, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run this Python in the checkout, forked where that works, to its end.

    Raises subprocess.TimeoutExpired.
    """
    if not forking.WORKS_HERE:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        process = forking.fork_python(*arguments, env=env, stdout=out, stderr=err)
        try:
            code = process.wait(timeout)
        finally:
            kill(process)
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def wait_for_http(url: str, *, process: Process, log: Path, seconds: int = _START_SECONDS) -> None:
    """Return when `url` answers 200.

    Raises RuntimeError with the end of the log when the process ends first or the time passes.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode} at its start: {tail(log)}")
        if _answers(url):
            return
        time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"{url} did not answer within {seconds} s: {tail(log)}")


def stop(process: Process) -> int:
    """Ask the process to end, make it end if it will not; returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return kill(process)
    _note(process.pid).unlink(missing_ok=True)
    return process.wait()


def kill(process: Process) -> int:
    """End the process and its children at once; returns its exit code."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    _note(process.pid).unlink(missing_ok=True)
    return code


def children(pid: int) -> Iterator[int]:
    """Processes that a process has started, whichever thread did."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the thread has just ended
            yield from map(int, (task / "children").read_text().split())


def kill_left_over(run_directory: Path) -> None:
    """End what the workers of this run started and could not end themselves."""
    for note in run_directory.glob("*.process"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(note.stem), signal.SIGKILL)


def tail(log: Path, characters: int = 3000) -> str:
    """The end of a log file."""
    return log.read_text(errors="replace")[-characters:] if log.exists() else "(no log)"


def _note(pid: int) -> Path:
    return Path(os.environ["HELMDASH_DATA_DIR"]) / f"{pid}.process"


def _answers(url: str) -> bool:
    where = urlsplit(url)
    try:
        # A client takes some ms to make, at each of the dozens of looks while a server starts.
        socket.create_connection((where.hostname, where.port), timeout=2).close()
    except OSError:
        return False
    try:
        # Without TLS in sight: reading the certificates for each look takes 20 ms.
        return httpx.get(url, timeout=2, trust_env=False, verify=False).status_code == 200
    except httpx.HTTPError:
        return False
