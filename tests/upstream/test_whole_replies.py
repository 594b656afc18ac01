"""Replies that are here as a whole are read without the parser, and nothing else is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from helmdash.upstream import whole_replies
from helmdash.upstream.transport import Answered, Transport
from helmdash.upstream.whole_replies import whole_reply
from tests.upstream.servers import run

_HEADERS = [
    ("content-type", "application/json"),
    ("accept-encoding", "identity"),
    ("user-agent", "helmdash"),
]
_PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def _of(data: bytes) -> whole_replies.WholeReply | None:
    return whole_reply(data, most_header_bytes=32 * 1024)


def test_a_whole_reply_is_taken_apart() -> None:
    reply = _of(
        b"HTTP/1.1 429 Too Many\r\nX-A:  b \r\ncontent-LENGTH:3\r\nConnection: Keep-Alive\r\n"
        b"x-a: \xfc\t\r\n\r\nno!"
    )

    assert reply == (
        429,
        (
            (b"X-A", b"b"),
            (b"content-LENGTH", b"3"),
            (b"Connection", b"Keep-Alive"),
            (b"x-a", b"\xfc"),
        ),
        b"no!",
    )


@pytest.mark.parametrize(
    "data",
    [
        _PLAIN[:-1],  # more is to come
        _PLAIN + b"H",  # or more has come
        _PLAIN[:20],
        _PLAIN.replace(b"1.1", b"1.0"),
        _PLAIN.replace(b"200", b"100"),
        _PLAIN.replace(b"200", b"204"),
        _PLAIN.replace(b"200", b"304"),
        _PLAIN.replace(b"200", b"600"),
        _PLAIN.replace(b"\r\n", b"\n"),
        _PLAIN.replace(b"Length: 2", b"Length: +2"),
        _PLAIN.replace(b"Length: 2", b"Length: 2, 2"),
        _PLAIN.replace(b"Length: 2", b"Length: " + b"0" * 20 + b"2"),
        _PLAIN.replace(b"2\r\n", b"2\r\nContent-Length: 2\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nTransfer-Encoding: chunked\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nConnection: close\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nUpgrade: h2c\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nX-A : b\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nX-A: b\r\n c\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nX-A: b\0\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\nX-A: b\rX-B: c\r\n"),
        _PLAIN.replace(b"2\r\n", b"2\r\n" + b"x: y\r\n" * 128),
        _PLAIN.replace(b"2\r\n", b"2\r\nx: " + b"y" * 33_000 + b"\r\n"),
        b"HTTP/1.1 200 OK\r\n\r\nhi",
        b"",
    ],
)
def test_what_can_be_read_in_two_ways_is_left_to_the_parser(data: bytes) -> None:
    assert _of(data) is None


async def _answered(*writes: bytes) -> tuple[int, Any, bytes]:
    """What the transport makes of a reply that is written so."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n{}")
            for piece in writes:
                writer.write(piece)
                await asyncio.sleep(0.01)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = Transport(allow_private=True)
    seen = []
    for _ in range(2):  # over one connection
        opened = await _ask(transport, port)
        body = opened.stream.take_whole()
        while body is None or (piece := await opened.stream.next_bytes()):
            body = (body or b"") + (piece if body is not None else b"")
        seen.append((opened.status, tuple(opened.raw_headers), body))
    await transport.aclose()
    server.close()
    await asyncio.sleep(0.01)
    assert seen[0] == seen[1]
    return seen[0]


async def _ask(transport: Transport, port: int) -> Answered:
    url = f"http://127.0.0.1:{port}/v1/x"
    return await transport.open("POST", url, _HEADERS, b"{}", connect=5, read=5, write=5, pool=5)


def test_in_one_piece_or_in_two_it_is_the_same_reply() -> None:
    assert run(_answered(_PLAIN)) == run(_answered(_PLAIN[:-1], _PLAIN[-1:]))
    assert run(_answered(_PLAIN)) == run(_answered(_PLAIN[:25], _PLAIN[25:]))


def test_the_read_timeout_of_a_request_is_its_own() -> None:
    """The timer stays from one request to the next; one that was set for longer is set anew."""

    async def ask() -> list[str]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(_PLAIN)
            await reader.readuntil(b"\r\n\r\n{}")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = Transport(allow_private=True)
        url = f"http://127.0.0.1:{port}/v1/x"
        told = []
        for seconds in (60.0, 0.2):
            limits = {"connect": 5.0, "read": seconds, "write": 5.0, "pool": 5.0}
            try:
                opened = await transport.open("POST", url, _HEADERS, b"{}", **limits)
                opened.stream.close()
                told.append(str(opened.status))
            except Exception as error:
                told.append(type(error).__name__)
        await transport.aclose()
        server.close()
        await asyncio.sleep(0.01)
        return told

    assert run(asyncio.wait_for(ask(), 10)) == ["200", "ReadTimeout"]
