"""People nobody knows are answered a few at a time, whatever they ask for and however many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from helmdash.doors.asgi import CONNECTION_KEY
from helmdash.doors.callers.sessions import Sessions
from helmdash.doors.callers.strangers import Strangers
from helmdash.doors.faults import SessionsUnavailable
from helmdash.upstream.services import oidc

COOKIE = {b"cookie": b"theme=dark; sessionid=of-somebody"}


class Known(Sessions):
    """Sessions without a database: whether there is one is told."""

    def __init__(self, user: str | None) -> None:
        super().__init__()
        self.user = user

    async def find_user(self, headers: Any) -> str | None:
        return self.user


class Work:
    """An application that goes on when it is told to."""

    def __init__(self, *, begins_early: bool = False) -> None:
        self.begins_early = begins_early
        self.under_way: list[str] = []
        self.most = 0
        self.done: list[str] = []
        self.goes_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.under_way.append(scope["path"])
        self.most = max(self.most, len(self.under_way))
        if self.begins_early:
            await send({"type": "http.response.start"})
        await self.goes_on.wait()
        self.under_way.remove(scope["path"])
        self.done.append(scope["path"])


class Line:
    """A connection whose client may leave."""

    def __init__(self) -> None:
        self.tell: Callable[[], None] | None = None

    def when_left(self, tell: Callable[[], None] | None) -> None:
        self.tell = tell


async def _send(message: Any) -> None:
    pass


async def _ask(
    strangers: Strangers,
    work: Work,
    path: str,
    headers: dict[bytes, bytes] | None = None,
    line: Line | None = None,
) -> None:
    scope: Any = {"path": path, **({CONNECTION_KEY: line} if line else {})}
    await strangers.run(work, scope, headers or {}, None, _send)  # type: ignore[arg-type]


def _under_way(
    number: int,
    *,
    path: str = "/login/",
    headers: dict[bytes, bytes] | None = None,
    user: str | None = None,
    begins_early: bool = False,
) -> int:
    """How many of so many are worked on at once, and that all are in the end."""

    async def run() -> int:
        strangers, work = Strangers(Known(user)), Work(begins_early=begins_early)
        asked = [
            asyncio.ensure_future(_ask(strangers, work, f"{path}{each}", headers))
            for each in range(number)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        found = work.most
        work.goes_on.set()
        await asyncio.gather(*asked)
        assert len(work.done) == number
        return found

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["/", "/login/", "/api/v1/calls", "/nothing"])
def test_strangers_are_worked_on_two_at_a_time(path: str) -> None:
    assert _under_way(50, path=path) == 2


def test_a_place_is_free_again_once_its_answer_begins() -> None:
    """Or two who read nothing would hold the sign-in page."""
    assert _under_way(50, begins_early=True) == 50


def test_who_is_signed_in_waits_for_nobody() -> None:
    assert _under_way(50, headers=COOKIE, user="7") == 50


def test_of_those_with_a_cookie_alone_a_few_are_let_through_unasked() -> None:
    assert _under_way(50, headers=COOKIE, user=None) == 8 + 2


@pytest.mark.parametrize("fault", [SessionsUnavailable, TimeoutError])
def test_where_nobody_can_say_who_is_signed_in_they_wait_their_turn(fault: Any) -> None:
    """The one whose turn it is hears soon that the database is away, and so do the others."""

    class Away(Known):
        async def find_user(self, headers: Any) -> str | None:
            raise fault

    async def run() -> int:
        strangers, work = Strangers(Away(None)), Work()
        asked = [asyncio.ensure_future(_ask(strangers, work, "/", COOKIE)) for _ in range(20)]
        for _ in range(10):
            await asyncio.sleep(0)
        found = work.most
        work.goes_on.set()
        await asyncio.gather(*asked)
        return found

    assert asyncio.run(run()) == 8 + 2


@pytest.mark.parametrize("path", ["/login/oidc/", "/login/oidc/done/"])
def test_who_asks_an_identity_provider_has_places_of_their_own(path: str) -> None:
    """More than may wait for it: the others are told that it is busy, and take nobody's place."""

    async def run() -> tuple[int, int]:
        strangers, work = Strangers(Known(None)), Work()
        asked = [asyncio.ensure_future(_ask(strangers, work, path)) for _ in range(50)]
        asked += [asyncio.ensure_future(_ask(strangers, work, "/login/"))]
        for _ in range(10):
            await asyncio.sleep(0)
        found = work.under_way.count(path), work.under_way.count("/login/")
        work.goes_on.set()
        await asyncio.gather(*asked)
        return found

    assert asyncio.run(run()) == (2 * oidc.MOST_AT_ONCE, 1)


def test_below_the_addresses_of_an_identity_provider_nobody_has_places_of_their_own() -> None:
    assert _under_way(50, path="/login/oidc/") == 2


def test_who_asks_whether_the_server_lives_does_not_wait_for_the_others() -> None:
    async def run() -> list[str]:
        strangers, work = Strangers(Known(None)), Work()
        paths = [*(f"/login/{each}" for each in range(9)), "/healthz"]
        asked = [asyncio.ensure_future(_ask(strangers, work, path)) for path in paths]
        for _ in range(10):
            await asyncio.sleep(0)
        found = list(work.under_way)
        work.goes_on.set()
        await asyncio.gather(*asked)
        return found

    assert asyncio.run(run()) == ["/login/0", "/login/1", "/healthz"]


def test_who_has_left_meanwhile_is_not_worked_for() -> None:
    async def run() -> Work:
        strangers, work = Strangers(Known(None)), Work()
        lines = [Line() for _ in range(5)]
        asked = [
            asyncio.ensure_future(_ask(strangers, work, f"/{number}", line=line))
            for number, line in enumerate(lines)
        ]
        await asyncio.sleep(0)
        for line in lines[2:4]:
            assert line.tell is not None
            line.tell()
        work.goes_on.set()
        await asyncio.gather(*asked)
        assert [line.tell for line in lines] == [None] * 5
        return work

    assert sorted(asyncio.run(run()).done) == ["/0", "/1", "/4"]


def test_work_that_fails_or_is_cancelled_gives_its_place_back() -> None:
    async def run() -> int:
        strangers, work = Strangers(Known(None)), Work()

        async def failing(scope: Any, receive: Any, send: Any) -> None:
            raise ValueError

        for _ in range(5):
            with pytest.raises(ValueError):  # no words of ours
                await strangers.run(failing, {"path": "/"}, {}, None, _send)  # type: ignore[arg-type]
        asked = [asyncio.ensure_future(_ask(strangers, work, f"/{each}")) for each in range(5)]
        await asyncio.sleep(0)
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        work.goes_on.set()
        await _ask(strangers, work, "/last")
        return len(work.done)

    assert asyncio.run(run()) == 1
