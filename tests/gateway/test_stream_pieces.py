"""The pieces of a stream: its first event at once, and the bulk of it in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from helmdash.doors.http.turns import Turns
from helmdash.gateway.forwarding.streams.stream_pieces import StreamPieces

_EVENT = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'


async def _all(reads: Sequence[bytes], turns: Turns) -> list[bytes]:
    waiting = [*reads, b""]

    async def read() -> bytes:
        return waiting.pop(0)

    pieces = StreamPieces(read, turns)
    found = [pieces.due(await pieces.next_piece())]
    while found[-1]:
        found.append(pieces.due(await pieces.next_piece()))
    return found


def _pieces(*reads: bytes) -> list[bytes]:
    async def run() -> list[bytes]:
        return await _all(reads, Turns(asyncio.get_running_loop()))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("came", "first"),
    [
        (_EVENT, _EVENT),
        (_EVENT * 50, _EVENT),
        (b"event: a\ndata: {}\n\nevent: b\ndata: {}\n\n", b"event: a\ndata: {}\n\n"),
        (b'{"a":1}\n{"b":2}\n', b'{"a":1}\n'),
        (b"data: {}\r\n\r\ndata: {}\r\n\r\n", b"data: {}\r\n"),
        (b'[{"a":1}', b'[{"a":1}'),
    ],
)
def test_the_first_event_goes_by_itself(came: bytes, first: bytes) -> None:
    pieces = _pieces(came, b"the rest")

    assert pieces[0] == first
    assert b"".join(pieces) == came + b"the rest"


def test_what_comes_in_bulk_is_cut_behind_lines() -> None:
    pieces = _pieces(_EVENT, _EVENT * 2_000, b"x" * 40_000)

    assert b"".join(pieces) == _EVENT * 2_001 + b"x" * 40_000
    assert max(map(len, pieces)) <= 4 * 1024
    assert all(piece.endswith(b"\n") for piece in pieces if piece.startswith(b"data"))


def test_nobodys_first_event_waits_for_the_bulk_of_others() -> None:
    """A dozen streams come as a whole at once; each has its first event before any has its rest."""

    async def run() -> list[bytes]:
        turns = Turns(asyncio.get_running_loop())
        seen: list[bytes] = []

        async def take() -> None:
            waiting = [_EVENT * 300, b""]

            async def read() -> bytes:
                return waiting.pop(0)

            pieces = StreamPieces(read, turns)
            while piece := pieces.due(await pieces.next_piece()):
                seen.append(piece)

        await asyncio.gather(*[take() for _ in range(12)])
        return seen

    seen = asyncio.run(run())
    assert seen[:12] == [_EVENT] * 12
    assert b"".join(seen) == _EVENT * 3_600


def test_who_leaves_while_it_waits_holds_nobody_up() -> None:
    async def run() -> list[int]:
        turns = Turns(asyncio.get_running_loop())
        seen: list[int] = []

        async def wait(number: int) -> None:
            await turns.mine()
            seen.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return seen

    assert asyncio.run(run()) == [0, 2]
