"""Turns: one at a time for each owner, the others served between, and nobody waits without end."""

from __future__ import annotations

import asyncio

import pytest

from helmdash.heavy.turns import MOST_WAITING_OF_ONE, TooManyWaiting, Turns


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Scene:
    """Requests by owner, which hold their turn until they are let go."""

    def __init__(self, most_at_once: int) -> None:
        self.turns = Turns(most_at_once)
        self.begun: list[str] = []
        self.goes = asyncio.Semaphore(0)

    async def request(self, owner: str) -> None:
        async with self.turns.turn(owner):
            self.begun.append(owner)
            await self.goes.acquire()

    def ask(self, owners: str) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request(owner)) for owner in owners]


def test_owners_are_served_in_turn_whoever_sends_more() -> None:
    async def scene() -> None:
        scene = Scene(1)
        tasks = scene.ask("aaaabbc")
        for _ in tasks:
            await settle()
            scene.goes.release()
        await asyncio.gather(*tasks)

        assert "".join(scene.begun) == "abcabaa"

    asyncio.run(scene())


def test_one_owner_never_works_twice_at_once() -> None:
    async def scene() -> None:
        scene = Scene(2)
        tasks = scene.ask("aaab")
        await settle()

        assert scene.begun == ["a", "b"]
        for _ in tasks:
            scene.goes.release()
        await asyncio.gather(*tasks)

    asyncio.run(scene())


def test_an_ended_turn_is_the_next_ones_although_its_block_goes_on() -> None:
    async def scene() -> None:
        turns = Turns(1)
        async with turns.turn("a") as turn:
            turn.end()
            turn.end()
            async with asyncio.timeout(1), turns.turn("a"), asyncio.timeout(1):
                pass

    asyncio.run(scene())


def test_too_many_of_one_owner_are_sent_away_and_others_are_not() -> None:
    async def scene() -> None:
        scene = Scene(1)
        tasks = scene.ask("a" * (1 + MOST_WAITING_OF_ONE))
        await settle()

        with pytest.raises(TooManyWaiting) as told:
            await scene.request("a")
        others = scene.ask("b")
        await settle()

        assert told.value.is_own
        assert told.value.retry_after_s > 0
        assert not others[0].done()
        for task in [*tasks, *others]:
            task.cancel()
        await asyncio.gather(*tasks, *others, return_exceptions=True)

    asyncio.run(scene())


@pytest.mark.parametrize("moment", ["waiting", "just called", "at work"])
def test_who_leaves_makes_room(moment: str) -> None:
    async def scene() -> None:
        scene = Scene(1)
        first, second = scene.ask("ab")
        await settle()
        leaving = second
        if moment == "just called":
            scene.goes.release()
            first.cancel()  # its turn ends within the same step in which the next one is called
            await asyncio.sleep(0)
        elif moment == "at work":
            leaving = first
        leaving.cancel()
        await settle()
        scene.goes.release()
        scene.goes.release()
        async with asyncio.timeout(1):
            await scene.request("c")
        await asyncio.gather(first, second, return_exceptions=True)

    asyncio.run(scene())
