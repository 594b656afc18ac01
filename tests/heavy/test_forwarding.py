"""Handing requests to a real worker process that runs a small application."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from helmdash.heavy import NoWorker, WorkerForwarder

APP = "tests.heavy.apps:application"
Scene = Callable[[WorkerForwarder], Awaitable[None]]


class Client:
    """One request, and what came of it."""

    def __init__(self, path: str, body: bytes = b"{}", *, key: bytes = b"k") -> None:
        self.body = body
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"a=%20b",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "headers": [(b"authorization", key), (b"x-odd", b"\xff")],
            "client": ("10.0.0.1", 4711),
            "server": ("127.0.0.1", 80),
            "state": object(),
        }
        self.messages: list[dict[str, Any]] = []
        self.leaves = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)

    async def ask(self, forwarder: WorkerForwarder) -> None:
        await forwarder.forward(self.scope, self.body, self.receive, self.send)

    @property
    def answer(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def play(scene: Scene) -> None:
    asyncio.run(played(scene))


async def played(scene: Scene) -> None:
    forwarder = WorkerForwarder(APP)
    try:
        async with asyncio.timeout(30):
            await scene(forwarder)
    finally:
        await forwarder.stop()


async def appears(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.005)


def waiting(tmp_path: Path, name: str, **more: object) -> tuple[bytes, Path, Path]:
    """The body of a request that waits for its end; where it notes its beginning and its end."""
    began, end = tmp_path / f"{name}-began", tmp_path / f"{name}-end"
    return json.dumps({"began": str(began), "file": str(end), **more}).encode(), began, end


def test_a_request_arrives_as_it_came_and_its_answer_as_it_was_made() -> None:
    async def scene(forwarder: WorkerForwarder) -> None:
        echo, stream = Client("/echo", b"x" * 3_000_000), Client("/stream")
        await echo.ask(forwarder)
        await stream.ask(forwarder)

        told = json.loads(echo.answer)
        assert told["body"] == 3_000_000
        assert told["query"] == "a=%20b"
        assert told["headers"] == [["authorization", "k"], ["x-odd", "\xff"]]
        assert not told["forwards"]
        assert echo.messages[0]["headers"] == [(b"x-one", b"1"), (b"x-one", b"\xe4")]
        assert [message.get("body") for message in stream.messages] == [None, b"0", b"1", b"2", b""]
        assert [message.get("more_body", False) for message in stream.messages][1:] == [
            *(True, True, True),
            False,
        ]

    play(scene)


def test_the_worker_hears_of_a_client_that_leaves(tmp_path: Path) -> None:
    async def scene(forwarder: WorkerForwarder) -> None:
        body, began, end = waiting(tmp_path, "a")
        client = Client("/wait", body)
        asking = asyncio.create_task(client.ask(forwarder))
        await appears(began)
        client.leaves.set()
        await asking
        await appears(end)

        assert end.read_text() == "http.disconnect"
        assert client.messages == []

    play(scene)


def test_a_server_that_stops_lets_the_worker_say_so(tmp_path: Path) -> None:
    async def scene(forwarder: WorkerForwarder) -> None:
        body, began, end = waiting(tmp_path, "a")
        client = Client("/wait", body)
        asking = asyncio.create_task(client.ask(forwarder))
        await appears(began)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        assert client.messages[0]["status"] == 503
        assert client.answer == b"stopping"
        assert end.read_text() == "stopped"

    play(scene)


def test_who_only_waits_gives_up_the_turn(tmp_path: Path) -> None:
    async def scene(forwarder: WorkerForwarder) -> None:
        first, began, _ = waiting(tmp_path, "a", gives_turn_up=True)
        second, began_too, _ = waiting(tmp_path, "b")
        third, began_third, _ = waiting(tmp_path, "c")
        clients = [Client("/wait", body) for body in (first, second, third)]
        tasks = [asyncio.create_task(client.ask(forwarder)) for client in clients]
        await appears(began)
        await appears(began_too)
        await Client("/echo", key=b"another").ask(forwarder)

        assert not began_third.exists()
        for client in clients:
            client.leaves.set()
        await asyncio.gather(*tasks)

    play(scene)


async def patiently(client: Client, forwarder: WorkerForwarder) -> None:
    """Ask again while the end of the process before has not been noticed."""
    while True:
        try:
            await client.ask(forwarder)
        except NoWorker:
            continue
        return


def test_a_worker_that_ends_is_said_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(forwarder: WorkerForwarder) -> None:
        before = Client("/echo")
        await before.ask(forwarder)
        with pytest.raises(NoWorker):
            await Client("/die").ask(forwarder)
        half = Client("/break")
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await patiently(half, forwarder)
        after = Client("/echo")
        await patiently(after, forwarder)

        assert half.answer == b"half"
        assert json.loads(after.answer)["pid"] != json.loads(before.answer)["pid"]

    play(scene)
    assert "has ended by itself" in caplog.text


def test_a_program_that_cannot_start_is_no_worker() -> None:
    async def scene() -> None:
        forwarder = WorkerForwarder("tests.heavy.apps:nothing")
        with pytest.raises(NoWorker):
            await Client("/echo").ask(forwarder)
        await forwarder.stop()

    asyncio.run(scene())


def test_no_python_runs_in_the_fork_that_becomes_the_worker(tmp_path: Path) -> None:
    """There it would wait for locks that other threads of the server held, SQLite's for one: an
    export that came while calls were stored held up the server for good."""
    uvloop = pytest.importorskip("uvloop")
    ran, watched = tmp_path / "ran", [True]
    os.register_at_fork(after_in_child=lambda: ran.touch() if watched else None)
    client = Client("/echo")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(played(client.ask))
    watched.clear()

    assert client.messages[0]["status"] == 200
    assert not ran.exists()
