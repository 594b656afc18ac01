"""A database that says nothing: who waits, who is told, and who goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from helmdash.doors import patience
from helmdash.doors.asgi import Message, Receive, Scope, Send
from helmdash.doors.faults import DatabaseUnavailable
from helmdash.doors.patience import READING_KEY, TURNED_AWAY_KEY, DatabaseWatch, Patient
from helmdash.operations.database.replica import Reading


class World:
    """A database that answers or not, and what a client got."""

    def __init__(self) -> None:
        self.is_there = self.is_replica_there = True
        self.sent: list[Message] = []
        self.watch = DatabaseWatch(lambda: self.is_there, lambda: self.is_replica_there)
        self.may_go_on, self.went_on = asyncio.Event(), asyncio.Event()

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def work(self, *, seconds: float, begins: bool = False) -> Callable[[Send], Awaitable[None]]:
        async def answer(send: Send) -> None:
            if begins:
                await send({"type": "http.response.start"})
            await asyncio.sleep(seconds)
            await send({"type": "the end"})

        return answer

    async def hang(self, send: Send) -> None:
        """Work that waits for the database until the test lets it go on: however long the watch
        takes to ask, it has not ended by then."""
        await self.may_go_on.wait()
        await send({"type": "the end"})
        self.went_on.set()


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ASK_AFTER_S", "_ASK_AGAIN_S", "_LOOK_S"):
        monkeypatch.setattr(patience, name, 0.05)


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        world = World()
        try:
            await asyncio.wait_for(scene(world), 10)
        finally:
            world.watch.close()

    asyncio.run(whole())


def kinds(world: World) -> list[Any]:
    return [message["type"] for message in world.sent]


def test_a_request_that_takes_its_time_goes_on_where_the_database_answers() -> None:
    async def scene(world: World) -> None:
        await world.watch.run(world.work(seconds=0.3), world.send)
        assert kinds(world) == ["the end"]
        assert not world.watch.is_silent

    play(scene)


def test_a_silent_replica_ends_the_wait_of_who_reads_from_it_and_of_nobody_else() -> None:
    async def scene(world: World) -> None:
        world.is_replica_there = False
        there, elsewhere = (Reading(lambda: True), Reading(lambda: False))
        assert [each.decide() for each in (there, elsewhere)] == [True, False]
        with pytest.raises(DatabaseUnavailable):
            await world.watch.run(world.hang, world.send, {READING_KEY: there})
        assert not world.watch.is_silent
        await world.watch.run(world.work(seconds=0.3), world.send, {READING_KEY: elsewhere})
        assert kinds(world) == ["the end"]

    play(scene)


def test_a_silent_database_ends_the_wait_and_everybody_elses_until_it_is_back() -> None:
    async def scene(world: World) -> None:
        world.is_there = False
        with pytest.raises(DatabaseUnavailable):
            await world.watch.run(world.hang, world.send)
        with pytest.raises(DatabaseUnavailable):
            await world.watch.run(world.work(seconds=0), world.send)
        # What was given up on goes on, and its answer reaches nobody.
        world.may_go_on.set()
        await world.went_on.wait()
        assert world.sent == []
        world.is_there = True
        while world.watch.is_silent:
            await asyncio.sleep(0.01)
        await world.watch.run(world.work(seconds=0), world.send)
        assert kinds(world) == ["the end"]

    play(scene)


def test_who_asks_for_liveness_is_let_through_and_hears_that_others_are_not() -> None:
    async def scene(world: World) -> None:
        heard: list[bool] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            heard.append(TURNED_AWAY_KEY in scope)

        async def receive() -> Message:
            raise AssertionError("nobody reads")

        async def ask() -> None:
            scope = {"type": "http", "path": "/readyz", "method": "GET"}
            await Patient(app, world.watch)(scope, receive, world.send)

        await ask()
        world.is_there = False
        with pytest.raises(DatabaseUnavailable):
            await world.watch.run(world.hang, world.send)
        await ask()
        world.is_there = True
        while world.watch.is_silent:
            await asyncio.sleep(0.01)
        await ask()
        assert heard == [False, True, False]

    play(scene)


def test_an_answer_that_has_begun_is_not_broken_off() -> None:
    async def scene(world: World) -> None:
        world.is_there = False
        await world.watch.run(world.work(seconds=0.3, begins=True), world.send)
        assert kinds(world) == ["http.response.start", "the end"]

    play(scene)


def test_a_fault_of_the_work_is_its_own() -> None:
    async def scene(world: World) -> None:
        async def fail(send: Send) -> None:
            raise LookupError

        with pytest.raises(LookupError):
            await world.watch.run(fail, world.send)

    play(scene)


def test_work_that_is_cancelled_may_say_goodbye() -> None:
    async def scene(world: World) -> None:
        async def part(send: Send) -> None:
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:
                await send({"type": "goodbye"})

        task = asyncio.ensure_future(world.watch.run(part, world.send))
        await asyncio.sleep(0.01)
        task.cancel()
        await task
        assert kinds(world) == ["goodbye"]

    play(scene)
