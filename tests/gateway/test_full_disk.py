"""A disk that takes nothing: what is answered with 2xx is recorded by then, or no model is asked.

The server may write no byte more to any file of its own; where tables are files of its own (SQLite)
its database takes nothing either.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.gateway.test_streams import native_request
from tests.gateway.world import PROVIDERS, model_of, open_http
from tests.support import environment
from tests.support.server import Served
from tests.support.upstreams import Fleet

pytestmark = pytest.mark.xdist_group("gateway")

WAYS = [(shape, stream) for shape in PROVIDERS for stream in (False, True)]


@contextmanager
def full_disk(served: Served) -> Iterator[None]:
    """For the length of the block no file of the server's process takes a byte."""
    limits = (1, resource.RLIM_INFINITY)
    before = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
    try:
        yield
    finally:
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, before)


def ask(http: httpx.Client, shape: str, *, stream: bool, mark: str) -> httpx.Response:
    path, body = native_request(shape, model_of(shape, "plain", mark), stream=stream)
    return http.post(path, json=body)


def test_with_a_full_disk_what_is_answered_well_is_recorded(
    serve: Callable[..., Served], fleet: Fleet, mark: str
) -> None:
    served = serve(**fleet.environment(), HELMDASH_WRITER="thread")
    with (
        open_http(served.base_url, served.api_key) as http,
        open_http(f"{served.base_url}/api/v1", served.api_key) as api,
    ):
        assert ask(http, "openai", stream=False, mark=mark).status_code == 200
        with full_disk(served):
            if environment.database() == "sqlite":
                assert_no_model_is_asked(http, fleet, mark)
            else:
                ids = [answered(http, shape, stream, mark) for shape, stream in WAYS]
                served.kill()
                served.start()
                assert {api.get(f"/calls/{each}").status_code for each in ids} == {200}
        wait_until_well(http)
        assert answered(http, "openai", True, mark)


def wait_until_well(http: httpx.Client) -> None:
    deadline = time.monotonic() + 20
    while (told := http.get("/readyz").json())["gateway"] != "ok":
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def answered(http: httpx.Client, shape: str, stream: bool, mark: str) -> str:
    answer = ask(http, shape, stream=stream, mark=mark)
    assert (answer.status_code, "error" in answer.text) == (200, False), answer.text
    return str(answer.headers["x-helmdash-call-id"])


def assert_no_model_is_asked(http: httpx.Client, fleet: Fleet, mark: str) -> None:
    for _ in range(3):  # the first finds out what the disk and the database say
        ask(http, "openai", stream=False, mark=mark)
    before = sum(len(fleet[shape].seen(mark)) for shape in PROVIDERS)
    for shape, stream in WAYS:
        answer = ask(http, shape, stream=stream, mark=mark)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "cannot record calls just now" in answer.text
    assert sum(len(fleet[shape].seen(mark)) for shape in PROVIDERS) == before
    ready = http.get("/readyz").json()
    assert "answered with 503" in ready["gateway"]
