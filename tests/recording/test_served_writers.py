"""Many clients at a real server: every 2xx is kept, whatever happens to the server.

TEST_CALLS=10000 runs the load in full, with 20 clients.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.recording import load
from tests.support.server import Served

CALLS = int(os.environ.get("TEST_CALLS", "1200"))
WRITERS = 20
_RECONCILED_AT_ONCE = 500


@pytest.fixture(scope="module")
def own(serve: Callable[..., Served]) -> Iterator[Served]:
    """A server that no other module writes to."""
    server = serve()
    yield server
    server.kill()


def client(server: Served) -> httpx.Client:
    return httpx.Client(
        base_url=f"{server.base_url}/api/v1",
        headers=server.headers,
        timeout=60,
        trust_env=False,
    )


def test_twenty_clients_at_once_lose_and_double_nothing(own: Served) -> None:
    shares = load.shares(calls=CALLS, writers=WRITERS)

    with ThreadPoolExecutor(WRITERS) as pool:
        answered = [a for share in pool.map(lambda s: list(_send(own, s)), shares) for a in share]

    assert "database is locked" not in own.log
    sent = {name for share in shares for name in load.ids(share)}
    assert {name for name, _ in answered} == sent
    assert sum(not is_duplicate for _, is_duplicate in answered) == len(sent)
    with client(own) as api:
        assert _stored(api, sorted(sent)) == sent
        for number in range(load.CONVERSATIONS):
            generations = _generations(api, f"talk-{number}")
            assert generations == list(range(1, len(generations) + 1))


def test_a_killed_server_kept_all_that_it_answered_for(own: Served) -> None:
    answered: list[str] = []
    enough = threading.Event()
    writers = [
        threading.Thread(target=_write_until_killed, args=(own, number, answered, enough))
        for number in range(8)
    ]
    for writer in writers:
        writer.start()

    assert enough.wait(60), own.log
    own.kill()
    for writer in writers:
        writer.join()
    own.start()

    with client(own) as api:
        assert _stored(api, answered) == set(answered)
        for number in range(load.CONVERSATIONS):
            generations = _generations(api, f"talk-{number}")
            assert generations == list(range(1, len(generations) + 1))
        (again,) = _post(api, [load.call(answered[0])])
        assert again == (answered[0], True)


def _send(server: Served, requests: Sequence[list[dict[str, Any]]]) -> Iterator[tuple[str, bool]]:
    with client(server) as api:
        for request in requests:
            yield from _post(api, request)


def _post(api: httpx.Client, calls: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Send one call or a batch; gives (id, whether it was a repeat) for each."""
    if len(calls) == 1:
        response = api.post("/calls", json=calls[0])
        assert response.status_code in (200, 201), response.text
        body = response.json()
        assert body["duplicate"] == (response.status_code == 200)
        return [(body["id"], body["duplicate"])]
    response = api.post("/calls/batch", json={"calls": calls})
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["rejected"], len(body["results"])) == ([], len(calls))
    assert body["stored"] + body["duplicates"] == len(calls)
    # A batch says how many were repeats, not which: any of them will do for the count.
    repeats = body["duplicates"]
    return [(result["id"], n < repeats) for n, result in enumerate(body["results"])]


def _write_until_killed(
    server: Served, writer: int, answered: list[str], enough: threading.Event
) -> None:
    number = 0
    with client(server) as api:
        while True:
            size = 1 + number % 7
            names = [f"w{writer}-{number + n}" for n in range(size)]
            number += size
            try:
                _post(api, [load.call(name) for name in names])
            except httpx.HTTPError:
                return
            answered.extend(names)
            if len(answered) > 400:
                enough.set()


def _stored(api: httpx.Client, names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(names), _RECONCILED_AT_ONCE):
        asked = names[start : start + _RECONCILED_AT_ONCE]
        response = api.post("/calls/reconcile", json={"ids": list(asked)})
        assert response.status_code == 200, response.text
        found.update(response.json()["stored"])
    return found


def _generations(api: httpx.Client, conversation: str) -> list[int]:
    """The generations of a conversation's calls, in order; each call is listed once."""
    found: dict[str, int] = {}
    cursor = None
    while True:
        params: dict[str, str | int] = {"conversation": conversation, "limit": 500}
        if cursor:
            params["cursor"] = cursor
        body = api.get("/calls", params=params).json()
        for item in body["items"]:
            assert item["id"] not in found
            found[item["id"]] = item["generation"]
        cursor = body["next"]
        if not cursor:
            return sorted(found.values())
