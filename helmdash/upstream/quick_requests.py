"""A request with a small body, over aiohttp's connections and its parser, without its session.

A session builds a request, a response, a writer and a task for each request, and half of what a
call through the gateway costs is that. What is written is the same, byte for byte, in one piece;
what comes is read by the same protocol, into the same stream of bytes. What is out of the ordinary
(no body, a large one, headers that aiohttp would add or change) goes through the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import aiohttp
from aiohttp import hdrs
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import _serialize_headers
from multidict import CIMultiDict
from yarl import URL

from helmdash.upstream.reply_protocol import ReplyProtocol

# What a session would add; a request that brings them needs none.
_NEEDED = frozenset({"content-type", "accept-encoding", "user-agent"})
# What it would write itself, or read something into.
_SPECIAL = frozenset(
    {
        "connection", "content-encoding", "content-length", "expect", "host", "transfer-encoding",
        "cookie",
    }
)  # fmt: skip
_SCHEMES = ("http", "https")
_SWITCHING = 101
# Addresses hold names of models that callers chose, so there is no end of them.
_MOST_PLACES = 1024


class Answer:
    """The head of an answer, and its body as aiohttp's stream of bytes.

    Read to its end, it has given its connection back by itself; until then `close` ends both.
    """

    __slots__ = ("connection", "content", "raw_headers", "status")

    def __init__(
        self,
        connection: Connection,
        status: int,
        raw_headers: Sequence[tuple[bytes, bytes]],
        content: aiohttp.StreamReader,
    ) -> None:
        self.connection: Connection | None = connection
        self.status = status
        self.raw_headers = raw_headers
        self.content = content
        content.on_eof(self._release)

    def close(self) -> None:
        """Let go of what has not come yet, and of the connection with it."""
        if self.connection is None:
            return
        if self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientConnectionError("Connection closed"))
        self.connection.close()
        self.connection = None

    def _release(self) -> None:
        connection = self.connection
        if connection is None:
            return
        protocol = connection.protocol
        if protocol is not None and protocol.upgraded:
            return  # what follows is no HTTP
        self.connection = None
        connection.release()


class Opener:
    """Sends requests over the connections of one session. Used on one event loop."""

    def __init__(self, session: aiohttp.ClientSession, *, most_header_bytes: int) -> None:
        connector = session.connector
        assert connector is not None
        self._session = session
        self._connector = connector
        self._most_header_bytes = most_header_bytes
        # Requests of no content: by them the connector knows where to connect to.
        self._places: dict[URL, aiohttp.ClientRequest] = {}

    async def open(
        self, url: URL, head: bytes, body: bytes, limits: aiohttp.ClientTimeout
    ) -> Answer:
        """Send a request (`head` of `request_head`) and wait for the head of its answer.

        Raises what a session raises.
        """
        if self._connector.closed:
            raise RuntimeError("Session is closed")
        place = self._place(url)
        try:
            connection = await self._connector.connect(place, traces=[], timeout=limits)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {url}") from error
        try:
            self._send(connection, head, body, limits)
            return await _answer(connection, place)
        except BaseException:
            connection.close()
            raise

    def _place(self, url: URL) -> aiohttp.ClientRequest:
        place = self._places.get(url)
        if place is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            place = self._places[url] = aiohttp.ClientRequest(
                hdrs.METH_POST, url, loop=self._connector._loop, session=self._session
            )
        return place

    def _send(
        self, connection: Connection, head: bytes, body: bytes, limits: aiohttp.ClientTimeout
    ) -> None:
        protocol = cast("ReplyProtocol", connection.protocol)
        protocol.expect(read_timeout=limits.sock_read, most_header_bytes=self._most_header_bytes)
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
        transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        protocol.start_timeout()


async def _answer(connection: Connection, place: aiohttp.ClientRequest) -> Answer:
    protocol = connection.protocol
    assert protocol is not None
    while True:
        try:
            message, content = await protocol.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientResponseError(
                place.request_info, (), status=error.code, message=error.message
            ) from error
        code = message.code
        if code >= 200 or code == _SWITCHING:
            return Answer(connection, code, message.raw_headers, content)


# The model is part of some addresses, and a key of the headers.
@lru_cache(maxsize=256)
def request_head(method: str, url: URL, headers: tuple[tuple[str, str], ...]) -> bytes | None:
    """The head of a request, all but the length of its body and what ends it; None: one for
    aiohttp's session. Raises ValueError for control characters."""
    names = {name.lower() for name, _ in headers}
    is_plain = len(names) == len(headers) and names >= _NEEDED and not names & _SPECIAL
    is_bare = url.raw_user is None and url.raw_password is None
    if not is_plain or not is_bare or url.scheme not in _SCHEMES or not url.raw_host:
        return None
    host = (hdrs.HOST, url.host_port_subcomponent or "")
    accept = () if "accept" in names else ((hdrs.ACCEPT, "*/*"),)
    told = CIMultiDict([host, *headers, *accept])
    head = _serialize_headers(f"{method} {url.raw_path_qs} HTTP/1.1", told)
    return head.removesuffix(b"\r\n")
