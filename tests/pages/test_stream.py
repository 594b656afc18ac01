"""The stream of news as its server asks it: who hears it, what is said, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.doors.asgi import ENDLESS_KEY, KNOWN_KEY, Message
from helmdash.doors.callers.sessions import Sessions
from helmdash.operations.access import members
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.pages import stream
from helmdash.pages.stream import LIVE_PATH, Streams
from helmdash.queries.news import news_mark
from tests.factories import make_capture, make_project, record, sign_in


@pytest.fixture
def member(transactional_db: None, django_user_model: Any) -> Client:
    """A viewer, committed: sessions are looked up on another thread."""
    project = make_project()
    django_user_model.objects.create_user("viewer")
    return sign_in("viewer", project=project, role=MemberRole.VIEWER)


@contextmanager
def open_streams(look: Callable[[], object] = news_mark) -> Iterator[Streams]:
    sessions = Sessions()
    streams = Streams(sessions, look)
    try:
        yield streams
    finally:
        streams.close()
        sessions.close()


def record_beside() -> None:
    with thread_connection():
        record(make_capture())


class Tab:
    """One request, its answer, and what its connection was told."""

    def __init__(self, client: Client | None, method: str = "GET") -> None:
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value if client else ""
        self.noted: list[str] = []
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.status = 0
        self.leaves = asyncio.Event()
        self._scope = {
            "type": "http",
            "method": method,
            "path": LIVE_PATH,
            "headers": [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode())],
            KNOWN_KEY: lambda: self.noted.append("known"),
            ENDLESS_KEY: lambda: self.noted.append("endless"),
        }

    async def ask(self, streams: Streams) -> int:
        """Until the answer ends; its status."""
        await streams(self._scope, self._receive, self._send)
        return self.status

    async def hear(self) -> bytes:
        """The next piece of the answer's body."""
        return await asyncio.wait_for(self.said.get(), 20)

    async def _send(self, message: Message) -> None:
        self.status = int(message.get("status", self.status))
        if "body" in message:
            self.said.put_nowait(message["body"])

    async def _receive(self) -> dict[str, Any]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}


def test_a_tab_hears_news_until_it_leaves_and_nothing_goes_on_after_it(
    member: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_LOOK_S", 0.01)
    monkeypatch.setattr(stream, "_BEAT_S", 0.01)

    has_looked = threading.Event()

    def look() -> object:
        found = news_mark()
        has_looked.set()
        return found

    async def listen() -> None:
        with open_streams(look) as streams:
            tab = Tab(member)
            asked = asyncio.create_task(tab.ask(streams))
            # Browsers that come back later than the page believes the server show it as away.
            assert await tab.hear() == b"retry: 1000\n\n"
            assert await tab.hear() == b"data: news\n\n"
            assert await tab.hear() == b"event: beat\ndata:\n\n"

            assert await asyncio.to_thread(has_looked.wait, 20)
            await asyncio.to_thread(record_beside)
            while await tab.hear() != b"data: news\n\n":
                pass
            tab.leaves.set()
            assert await asyncio.wait_for(asked, 20) == 200
            await asyncio.sleep(0.1)

            assert tab.noted == ["known", "endless"]
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(listen())


def test_an_old_stream_ends_by_itself_and_nobody_else_has_one(
    member: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_LIFE_S", 0.0)
    gone = Client()
    gone.cookies[settings.SESSION_COOKIE_NAME] = member.session.session_key or ""

    async def ask_each(*tabs: tuple[Client | None, str]) -> list[int]:
        with open_streams() as streams:
            return [await Tab(*tab).ask(streams) for tab in tabs]

    asked = ask_each((member, "GET"), (None, "GET"), (member, "POST"))
    assert asyncio.run(asked) == [200, 204, 405]

    member.logout()
    assert asyncio.run(ask_each((gone, "GET"))) == [204]


def leave(member: Client) -> None:
    with thread_connection():
        members.remove_member(actor=SHELL, user="viewer", project=make_project().slug)


def sign_out(member: Client) -> None:
    with thread_connection():
        member.logout()


@pytest.mark.parametrize("ends", [leave, sign_out])
def test_who_may_read_no_more_hears_no_more(
    member: Client, monkeypatch: pytest.MonkeyPatch, ends: Callable[[Client], None]
) -> None:
    monkeypatch.setattr(stream, "_BEAT_S", 0.01)
    monkeypatch.setattr(stream, "_ASK_AGAIN_S", 0.01)

    async def listen() -> None:
        with open_streams() as streams:
            tab = Tab(member)
            asked = asyncio.create_task(tab.ask(streams))
            for _ in range(5):
                await tab.hear()
            assert not asked.done()
            await asyncio.to_thread(ends, member)
            assert await asyncio.wait_for(asked, 20) == 200

    asyncio.run(listen())


def test_who_reads_no_project_hears_nothing(
    member: Client, django_user_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_LIFE_S", 0.0)
    clients = []
    for name, is_superuser in (("nowhere", False), ("root", True)):
        user = django_user_model.objects.create_user(name, is_superuser=is_superuser)
        clients.append(Client())
        clients[-1].force_login(user)

    async def ask_each() -> list[int]:
        with open_streams() as streams:
            return [await Tab(client).ask(streams) for client in (member, *clients)]

    assert asyncio.run(ask_each()) == [200, 204, 200]


def test_one_person_leaves_room_for_others(
    member: Client, django_user_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_MOST_OF_ONE", 2)
    django_user_model.objects.create_user("other")
    other = sign_in("other", project=make_project(), role=MemberRole.VIEWER)

    async def open_and_leave() -> None:
        with open_streams() as streams:
            tabs = [Tab(member), Tab(member), Tab(other)]
            asked = [asyncio.create_task(tab.ask(streams)) for tab in tabs]
            for tab in tabs:
                await tab.hear()
            assert await Tab(member).ask(streams) == 429
            for tab in tabs:
                tab.leaves.set()
            assert await asyncio.gather(*asked) == [200, 200, 200]
            again = Tab(member)
            asked = [asyncio.create_task(again.ask(streams))]
            await again.hear()
            again.leaves.set()
            assert await asyncio.gather(*asked) == [200]

    asyncio.run(open_and_leave())
