"""The one body reader: bytes, time, and memory that all callers share."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterable

import pytest

from helmdash.doors.asgi import Disconnected, Message, Receive
from helmdash.doors.body import ANONYMOUS, Bodies, Limits
from helmdash.doors.faults import BodiesFull, BodyTooLarge, BodyTooSlow, Fault

KB = 1024
LIMITS = Limits(
    body_bytes=1024 * KB,
    anonymous_bytes=64 * KB,
    all_bytes=4096 * KB,
    seconds=0.05,
    anonymous_seconds=0.05,
)


def arriving(parts: Iterable[bytes], *, ends: bool = True, leaves: bool = False) -> Receive:
    """What a client sends; then it is silent, unless that was all, or it leaves."""
    waiting = list(parts)
    count = len(waiting)

    async def receive() -> Message:
        nonlocal count
        if not waiting:
            if leaves:
                return {"type": "http.disconnect"}
            await asyncio.Event().wait()
        count -= 1
        return {
            "type": "http.request",
            "body": waiting.pop(0),
            "more_body": bool(count) or not ends,
        }

    return receive


@pytest.mark.parametrize(
    ("owner", "parts", "ends", "fault"),
    [
        ("key 1", [b"x" * KB * 1025], True, BodyTooLarge),
        ("key 1", [b"x" * KB * 512] * 3, True, BodyTooLarge),
        ("key 1", [b"x" * KB], False, BodyTooSlow),
        ("key 1", [b"x" * KB * 500] * 2, False, BodyTooSlow),
        # Of nobody that is known, much less.
        (ANONYMOUS, [b"x" * KB * 65], True, BodyTooLarge),
        (ANONYMOUS, [b"x" * KB] * 65, True, BodyTooLarge),
        (ANONYMOUS, [b"x"], False, BodyTooSlow),
    ],
)
def test_a_body_that_is_refused_holds_nothing(
    owner: str, parts: list[bytes], ends: bool, fault: type[Fault]
) -> None:
    bodies = Bodies(LIMITS)

    with pytest.raises(fault):
        asyncio.run(bodies.read({}, arriving(parts, ends=ends), owner=owner))

    assert bodies.held_bytes == 0


def test_an_announced_size_is_refused_before_a_byte_is_read() -> None:
    async def receive() -> Message:
        raise AssertionError("the body was asked for")

    with pytest.raises(BodyTooLarge):
        asyncio.run(Bodies(LIMITS).read({b"content-length": b"9999999"}, receive, owner="key 1"))


def test_a_client_that_leaves_holds_nothing() -> None:
    bodies = Bodies(LIMITS)

    with pytest.raises(Disconnected):
        asyncio.run(bodies.read({}, arriving([b"x"], ends=False, leaves=True), owner="key 1"))

    assert bodies.held_bytes == 0


def test_one_key_cannot_take_the_room_of_the_others() -> None:
    bodies = Bodies(LIMITS)
    large = [b"x" * KB * 512] * 2

    async def story() -> None:
        held = [await bodies.read({}, arriving(large), owner="greedy") for _ in range(2)]
        with pytest.raises(BodiesFull):
            await bodies.read({}, arriving(large), owner="greedy")
        # Small ones are let in all the same, and others have their room.
        held.append(await bodies.read({}, arriving([b"{}"]), owner="greedy"))
        other = await bodies.read({}, arriving(large), owner="other")
        bodies.release(other, owner="other")
        for body in held:
            bodies.release(body, owner="greedy")
        bodies.release(await bodies.read({}, arriving(large), owner="greedy"), owner="greedy")

    asyncio.run(story())

    assert bodies.held_bytes == 0


def test_unfinished_bodies_of_strangers_share_little_memory() -> None:
    bodies = Bodies(LIMITS)

    async def story() -> None:
        readers = [
            asyncio.ensure_future(
                bodies.read({}, arriving([b"x" * KB * 60], ends=False), owner=ANONYMOUS)
            )
            for _ in range(500)
        ]
        await asyncio.sleep(0.01)
        assert bodies.held_bytes <= 256 * KB
        # Who is known, and a form that is there in one piece, are not held up.
        body = await bodies.read({}, arriving([b"x" * KB * 512] * 2), owner="key 1")
        bodies.release(body, owner="key 1")
        form = await bodies.read({}, arriving([b"username=a"]), owner=ANONYMOUS)
        bodies.release(form, owner=ANONYMOUS)
        await asyncio.gather(*readers, return_exceptions=True)

    asyncio.run(story())

    assert bodies.held_bytes == 0


class Page:
    """What refers to itself, as a request and its page do."""

    def __init__(self, body: bytes) -> None:
        self.body, self.itself = body, self


def test_what_large_bodies_leave_goes_by_their_bytes_and_not_by_its_number() -> None:
    bodies = Bodies(LIMITS)
    kept: list[weakref.ref[Page]] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(200):
            body = asyncio.run(bodies.read({}, arriving([b"x" * KB * 100]), owner="key 1"))
            kept.append(weakref.ref(Page(body)))
            bodies.release(body, owner="key 1")
    finally:
        gc.enable()

    # 8 MiB at most, where 20 would have stayed.
    assert sum(page() is not None for page in kept) <= 82
