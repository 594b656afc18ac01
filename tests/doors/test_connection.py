"""What a connection does at once is what its application would have got by ASGI's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from helmdash.doors.asgi import App, Connection, Receive, Scope, Send, connection_of
from helmdash.doors.http.protocol import BoundedProtocol
from helmdash.doors.http.response_head import head_of

_HEADERS = [(b"x-helmdash-level", b"ok"), (b"content-type", b"a/b"), (b"content-length", b"2")]
_REQUEST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n"


class _Wire(asyncio.Transport):
    """The other end of a connection: what was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


Answering = Callable[[Connection, Receive, Send], Awaitable[None]]


def _talk(answering: Answering, *data: bytes, hangs_up: bool = False) -> _Wire:
    """Send pieces of data, one in each turn of the loop, to an application; gives what it wrote."""

    async def run() -> _Wire:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            connection = connection_of(scope)
            assert connection is not None
            await answering(connection, receive, send)

        wire = _Wire()
        protocol = BoundedProtocol(_config(app), ServerState(), {}, asyncio.get_running_loop())
        protocol.connection_made(wire)
        for piece in data:
            protocol.data_received(piece)
            await asyncio.sleep(0)
        if hangs_up:
            protocol.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        if not hangs_up:
            protocol.connection_lost(None)
        return wire

    return asyncio.run(run())


def _config(app: App) -> Config:
    config = Config(cast("Any", app), lifespan="off", log_level="critical", proxy_headers=False)
    config.load()
    cast("Any", config).loaded_app = app
    return config


async def _by_messages(connection: Connection, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": b"hi"})


async def _at_once(connection: Connection, receive: Receive, send: Send) -> None:
    assert connection.answer_whole(200, _HEADERS, b"hi")


def test_an_answer_in_one_write_has_the_bytes_of_the_messages() -> None:
    ours, theirs = _talk(_at_once, _REQUEST + b"{}"), _talk(_by_messages, _REQUEST + b"{}")

    assert len(ours.writes) == 1
    assert b"".join(theirs.writes) == ours.writes[0]


def test_requests_in_a_pipeline_are_answered_one_after_the_other() -> None:
    wire = _talk(_at_once, (_REQUEST + b"{}") * 3)

    assert len(wire.writes) == 3


async def _stream(connection: Connection, receive: Receive, send: Send, *, at_once: bool) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS[:2]})
    for piece in (b"a", b"bc"):
        if at_once:
            assert connection.write_piece(piece)
        else:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    assert not connection.write_piece(b"d")


def test_pieces_of_a_stream_have_the_bytes_of_the_messages() -> None:
    ours = _talk(partial(_stream, at_once=True), _REQUEST + b"{}")
    theirs = _talk(partial(_stream, at_once=False), _REQUEST + b"{}")

    assert ours.writes == theirs.writes
    assert ours.writes[-1] == b"0\r\n\r\n"


def test_there_is_no_piece_before_the_head_nor_of_a_counted_answer() -> None:
    seen: list[bool] = []

    async def answer(connection: Connection, receive: Receive, send: Send) -> None:
        seen.append(connection.write_piece(b"a"))
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        seen.append(connection.write_piece(b"hi"))

    _talk(answer, _REQUEST + b"{}")

    assert seen == [False, False]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (_REQUEST, b"{"),  # the rest of the body is still to come
        (_REQUEST.replace(b"POST", b"HEAD"), b"{}"),
        (_REQUEST.replace(b"1.1", b"1.0"), b"{}"),  # the connection is closed behind it
        (_REQUEST.replace(b"host", b"connection: close\r\nhost"), b"{}"),
    ],
)
def test_what_is_more_than_writing_is_left_to_the_messages(head: bytes, body: bytes) -> None:
    seen: list[bool] = []

    async def answer(connection: Connection, receive: Receive, send: Send) -> None:
        seen.append(connection.answer_whole(200, _HEADERS, b"hi"))

    _talk(answer, head + body)

    assert seen == [False]


@pytest.mark.parametrize("name", [b"connection", b"transfer-encoding"])
def test_a_header_that_ends_the_connection_is_no_mere_bytes(name: bytes) -> None:
    assert head_of(200, [*_HEADERS, (name, b"close")]) is None


@pytest.mark.parametrize("header", [(b"x a", b"b"), (b"x-a", b"b\r\nx-c: d"), (b"x-a", b"b\0")])
def test_no_header_holds_bytes_that_end_it(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(RuntimeError):
        head_of(200, [*_HEADERS, header])


def test_a_body_is_at_hand_once_all_of_it_is_here() -> None:
    seen: list[object] = []

    async def answer(connection: Connection, receive: Receive, send: Send) -> None:
        seen.append(connection.whole_body())
        seen.append((await receive()).get("body"))
        seen.append((await receive()).get("body"))

    _talk(answer, _REQUEST + b"{", b"}")

    assert seen == [None, b"{", b"}"]

    seen.clear()

    async def take(connection: Connection, receive: Receive, send: Send) -> None:
        seen.append(connection.whole_body())

    _talk(take, _REQUEST + b"{}")

    assert seen == [b"{}"]


@pytest.mark.parametrize("hangs_up", [True, False])
def test_who_asks_is_told_once_that_the_client_has_left(hangs_up: bool) -> None:
    told: list[str] = []

    async def answer(connection: Connection, receive: Receive, send: Send) -> None:
        connection.when_left(lambda: told.append("left"))
        if not hangs_up:
            connection.when_left(None)

    _talk(answer, _REQUEST + b"{}", hangs_up=hangs_up)

    assert told == ["left"] * hangs_up


def test_a_client_that_had_left_before_is_told_of_soon() -> None:
    told: list[str] = []

    async def answer(connection: Connection, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0)
        connection.when_left(lambda: told.append("left"))
        assert told == []

    _talk(answer, _REQUEST + b"{}", hangs_up=True)

    assert told == ["left"]
