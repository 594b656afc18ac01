"""Strangers have their turns one after the other, and everybody else goes on in between."""

from __future__ import annotations

import asyncio
from functools import partial

from helmdash.doors.http.turns import Turns, turns_on


def test_in_one_round_of_the_loop_one_stranger_is_looked_at() -> None:
    async def run() -> list[object]:
        seen: list[object] = []
        turns = turns_on(asyncio.get_running_loop())
        assert turns is turns_on(asyncio.get_running_loop())
        for number in range(4):
            turns.wait_for(partial(seen.append, number))
        while 3 not in seen:
            await asyncio.sleep(0)
            seen.append("another")
        return seen[:7]

    assert asyncio.run(run()) == [0, "another", 1, "another", 2, "another", 3]


def test_a_turn_that_fails_stops_nobody_behind_it() -> None:
    async def run() -> list[int]:
        seen: list[int] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: None)
        turns = Turns(loop)
        turns.wait_for(lambda: [][0])
        turns.wait_for(partial(seen.append, 1))
        for _ in range(4):
            await asyncio.sleep(0)
        return seen

    assert asyncio.run(run()) == [1]
