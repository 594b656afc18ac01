"""Small requests, written without aiohttp's session: what goes out is what one would write."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from yarl import URL

from helmdash.upstream.quick_requests import request_head
from helmdash.upstream.transport import Transport
from tests.upstream.servers import run

_BROUGHT = [
    ("content-type", "application/json"),
    ("authorization", "Bearer sk-1"),
    ("accept-encoding", "identity"),
    ("user-agent", "helmdash"),
]
_BODY = b'{"model":"m"}'


async def _written(path: str, headers: list[tuple[str, str]], *, by_session: bool) -> bytes:
    """What comes out of a socket, the port left out."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head + await reader.readexactly(len(_BODY)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}{path}"
    if by_session:
        place = URL(url, encoded=True)
        async with (
            aiohttp.ClientSession() as session,
            session.post(place, headers=headers, data=_BODY) as reply,
        ):
            assert await reply.read() == b"hi"
    else:
        transport = Transport(allow_private=True)
        opened = await transport.open(
            "POST", url, headers, _BODY, connect=5, read=5, write=5, pool=5
        )
        assert opened.stream.take_whole() or await opened.stream.next_bytes() == b"hi"
        await transport.aclose()
    server.close()
    return seen[0].replace(b":%d" % port, b":PORT")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/a%2Fb/c?x=%20y&z", "/ü"])
@pytest.mark.parametrize(
    "more", [[], [("accept", "text/event-stream")], [("x-note", "größer")], [("X-A", "")]]
)
def test_what_is_written_is_what_a_session_would_write(
    path: str, more: list[tuple[str, str]]
) -> None:
    headers = [*_BROUGHT, *more]

    ours, theirs = run(_both(path, headers))

    assert ours == theirs
    assert ours.startswith(b"POST /")
    assert ours.endswith(_BODY)


async def _both(path: str, headers: list[tuple[str, str]]) -> tuple[bytes, bytes]:
    return (
        await _written(path, headers, by_session=False),
        await _written(path, headers, by_session=True),
    )


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1/", _BROUGHT[:-1]),  # aiohttp names itself
        ("http://127.0.0.1/", [*_BROUGHT, ("Host", "elsewhere")]),
        ("http://127.0.0.1/", [*_BROUGHT, ("Transfer-Encoding", "chunked")]),
        ("http://127.0.0.1/", [*_BROUGHT, ("x-a", "1"), ("X-A", "2")]),
        ("http://user:word@127.0.0.1/", _BROUGHT),
        ("ftp://127.0.0.1/", _BROUGHT),
    ],
)
def test_what_a_session_would_change_is_left_to_it(
    url: str, headers: list[tuple[str, str]]
) -> None:
    assert request_head("POST", URL(url), tuple(headers)) is None


@pytest.mark.parametrize("header", [("x-a", "b\r\nx-c: d"), ("x-a\n", "b"), ("x-a", "b\0")])
def test_no_header_ends_the_one_before_it(header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="control character"):
        request_head("POST", URL("http://127.0.0.1/"), (*_BROUGHT, header))
