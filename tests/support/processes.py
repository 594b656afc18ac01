"""Starting, awaiting and ending the processes of a test run."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

_START_SECONDS = 60
_STOP_SECONDS = 15
_POLL_SECONDS = 0.05


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_http(url: str, *, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when `url` answers 200.

    Raises RuntimeError with the end of the log when the process ends first or a minute passes.
    """
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode} at its start: {tail(log)}")
        if _answers(url):
            return
        time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"{url} did not answer within {_START_SECONDS} s: {tail(log)}")


def stop(process: subprocess.Popen[bytes]) -> int:
    """Ask the process to end, make it end if it will not; returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def tail(log: Path, characters: int = 3000) -> str:
    """The end of a log file."""
    return log.read_text(errors="replace")[-characters:] if log.exists() else "(no log)"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
