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
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.support import ROOT

_START_SECONDS = 60
_STOP_SECONDS = 15
_POLL_SECONDS = 0.05


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def spawn_python(
    *arguments: str, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start this Python in the checkout, in a process group of its own; it prints to `log`."""
    return spawn(sys.executable, *arguments, cwd=ROOT, log=log, env=env)


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


def wait_for_http(
    url: str, *, process: subprocess.Popen[bytes], log: Path, seconds: int = _START_SECONDS
) -> None:
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


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ask the process to end, make it end if it will not; returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return kill(process)
    _note(process.pid).unlink(missing_ok=True)
    return process.returncode


def kill(process: subprocess.Popen[bytes]) -> int:
    """End the process and its children at once; returns its exit code."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    _note(process.pid).unlink(missing_ok=True)
    return code


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
