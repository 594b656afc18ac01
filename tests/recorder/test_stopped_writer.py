"""A writer process that is stopped is noticed and replaced, whatever it was doing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import httpx
import pytest

from tests.recorder.support import writer_of
from tests.support.server import Served


@pytest.mark.slow
def test_one_that_is_stopped_before_it_answers_is_replaced(serve: Callable[..., Served]) -> None:
    served = serve(HELMDASH_WRITER="process")
    assert _reports(served)
    first = writer_of(served)
    # The thread that shows that it lives while the main thread reads its packages.
    _wait_for(lambda: len(os.listdir(f"/proc/{first}/task")) > 1)
    os.kill(first, signal.SIGSTOP)
    second = writer_of(served, other_than=first)

    _wait_for(lambda: _reports(served) and _who_stores(served) == "process")
    assert writer_of(served) == second
    assert "shows no sign of life and is ended by force" in served.log


def _reports(served: Served) -> bool:
    """Somebody reports a call, which is stored."""
    url = f"{served.base_url}/api/v1/calls"
    return httpx.post(url, json={"model": "m"}, headers=served.headers, timeout=30).is_success


def _who_stores(served: Served) -> str:
    return str(httpx.get(f"{served.base_url}/readyz", timeout=30).json()["recorder"]["writer"])


def _wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
