"""Several server processes: they end with the one that started them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.support.processes import children
from tests.support.server import serve


@pytest.mark.slow
@pytest.mark.one_database
def test_workers_whose_parent_was_killed_store_what_they_have_and_leave_the_port(
    tmp_path: Path,
) -> None:
    """Killed alone, as the kernel does where memory runs out."""
    served = serve(tmp_path, HELMDASH_WORKERS="2")
    try:
        asked = {"id": "before", "model": "m"}
        with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as client:
            assert client.post("/api/v1/calls", json=asked).status_code == 201
        left = [*children(served.process.pid)]
        assert len(left) >= 2
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait()

        end = time.monotonic() + 30
        while (alive := [pid for pid in left if is_alive(pid)]) and time.monotonic() < end:
            time.sleep(0.05)

        assert alive == [], served.log
        served.settings["HELMDASH_WORKERS"] = "1"
        served.start()
        with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as client:
            told = client.post("/api/v1/calls/reconcile", json={"ids": ["before"]}).json()
        assert told["missing"] == []
    finally:
        served.close()


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_is_closed_stops_the_server_in_order(tmp_path: Path, workers: str) -> None:
    """One process was ended at once, as by a kill; of two the server went on without a terminal."""
    served = serve(tmp_path, HELMDASH_WORKERS=workers, HELMDASH_WRITER="process")
    try:
        asked = {"id": "before", "model": "m"}
        with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as client:
            assert client.post("/api/v1/calls", json=asked).status_code == 201
        left = [*children(served.process.pid)]
        # As shells do with a job, or the kernel with whoever is in front.
        os.killpg(served.process.pid, signal.SIGHUP)

        assert served.process.wait(60) == 0, served.log
        end = time.monotonic() + 30
        while (alive := [pid for pid in left if is_alive(pid)]) and time.monotonic() < end:
            time.sleep(0.05)
        assert alive == [], served.log
    finally:
        served.close()


def is_alive(pid: int) -> bool:
    """It runs, and is not only waited for by nobody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
