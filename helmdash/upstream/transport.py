"""httpx over aiohttp: the transport of every call to an upstream.

httpx's own transport collapses under concurrency, aiohttp's pool does not (ADR 10). One
transport has one pool and one policy about private addresses, so that a connection made under one
policy is never used under the other.
"""

from __future__ import annotations

import asyncio
import os
import select
import ssl
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace
from yarl import URL

from helmdash.upstream.guard import RefusedAddress, socket_maker
from helmdash.upstream.quick_requests import Answer, Opener, request_head
from helmdash.upstream.reply_protocol import ReplyProtocol
from helmdash.upstream.uploads import BUFFERED_BYTES, Upload

# More calls at once than this wait for a connection; a thousand streams is what one process bears.
MOST_CONNECTIONS = 1000
# Who closes an idle connection just as we write to it has perhaps read the request, and it is not
# sent again: so we leave first. Providers wait for a minute or more. Servers nearby wait for 5
# seconds (uvicorn and so vLLM, Node, llama.cpp) or 2 (gunicorn); to them, connecting costs nothing.
_IDLE_SECONDS = 30.0
_IDLE_SECONDS_NEARBY = 1.5
# aiohttp's own read timeout speaks first; this one is for when it cannot.
_GRACE_SECONDS = 1.0
# Rate limit headers of some gateways are long; 8 KiB, aiohttp's own limit, has been met.
_MOST_HEADER_BYTES = 32 * 1024

# aiohttp writes these itself, from the URL and the body.
_OWN_HEADERS = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})


class NotResolved(httpx.ConnectError):
    """The host's name leads to no address."""


class NotSecure(httpx.ConnectError):
    """No TLS connection that can be trusted."""


class NotAllowed(httpx.ConnectError):
    """The egress guard refuses the address; the message is its sentence."""


class NotHttp(httpx.RemoteProtocolError):
    """In the middle of a body came bytes that are not HTTP."""


class Transport(httpx.AsyncBaseTransport):
    """One pool of connections. Made in any thread, used in one event loop.

    `resolver` stands in for the system's, in tests.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        tls: ssl.SSLContext | None = None,
        resolver: aiohttp.abc.AbstractResolver | None = None,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self._allow_private = allow_private
        self._tls = tls
        self._resolver = resolver
        self._most_connections = most_connections
        self._session: aiohttp.ClientSession | None = None
        self._opener: Opener | None = None
        self._in_use = 0
        self.is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the headers of its answer.

        Raises httpx's transport errors, and NotResolved, NotSecure and NotAllowed. The answer's
        stream has to be read to its end or closed.
        """
        timeout = request.extensions["timeout"]
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.headers.raw
            if name.lower() not in _OWN_HEADERS
        ]
        answered = await self.open(
            request.method,
            str(request.url),
            headers,
            await request.aread(),
            connect=timeout["connect"],
            read=timeout["read"],
            write=timeout["write"],
            pool=timeout["pool"],
        )
        return httpx.Response(
            answered.status,
            headers=answered.raw_headers,
            stream=answered.stream,
            request=request,
        )

    async def open(
        self,
        method: str,
        url: str,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        connect: float,
        read: float,
        write: float,
        pool: float,
    ) -> Answered:
        """The same from plain values: httpx's own objects cost as much as the call they describe.

        The times are in seconds. Raises what `handle_async_request` raises.
        """
        limits = _limits(connect, read, pool)
        self._in_use += 1
        failure: Exception | None = None
        answer: aiohttp.ClientResponse | Answer | None = None
        try:
            answer = await self._request(method, url, headers, body, limits, write)
        except Exception as error:
            failure = self._told(error)
        finally:
            if answer is None:
                self._in_use -= 1
        if answer is None:
            # Out here, so that it has no context: aiohttp's errors hold our headers, key and all.
            assert failure is not None
            raise failure
        body_to_come = Body(answer, self, read_seconds=read)
        return Answered(answer.status, answer.raw_headers, body_to_come)

    async def aclose(self) -> None:
        """Close every connection, also of answers that are still being read."""
        self.is_closed = True
        if self._session is not None:
            await self._session.close()

    def release(self) -> None:
        """Count one answer less in use: its body was read to the end, or closed."""
        self._in_use -= 1

    async def _request(
        self,
        method: str,
        url: str,
        headers: list[tuple[str, str]],
        body: bytes,
        limits: aiohttp.ClientTimeout,
        write_seconds: float,
    ) -> aiohttp.ClientResponse | Answer:
        session = self._session or self._open_session()
        if self._opener is not None and 0 < len(body) <= BUFFERED_BYTES:
            place = _url(url)
            head = request_head(method, place, tuple(headers))
            if head is not None:
                return await self._opener.open(place, head, body, limits)
        upload = Upload(body, write_seconds) if len(body) > BUFFERED_BYTES else None
        answer = session.request(
            method,
            _url(url),
            headers=headers,
            data=upload or body or None,
            timeout=limits,
            allow_redirects=False,
        )
        return await (upload.send(answer) if upload else answer)

    def _open_session(self) -> aiohttp.ClientSession:
        connector = _Connector(
            limit=self._most_connections,
            keepalive_timeout=_IDLE_SECONDS_NEARBY if self._allow_private else _IDLE_SECONDS,
            resolver=self._resolver,
            socket_factory=socket_maker(allow_private=self._allow_private),
            ssl=self._tls or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            max_line_size=_MOST_HEADER_BYTES,
            max_field_size=_MOST_HEADER_BYTES,
        )
        self._opener = Opener(self._session, most_header_bytes=_MOST_HEADER_BYTES)
        return self._session

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            # aiohttp has one error for both waits.
            is_full = self._in_use >= self._most_connections
            return httpx.PoolTimeout("pool") if is_full else httpx.ConnectTimeout("connect")
        return translated(error)


class _Connector(aiohttp.TCPConnector):
    """Asks the system about a pooled connection before using it.

    The event loop may be too busy to have heard that the other side has closed it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(cast("type[ResponseHandler]", ReplyProtocol), loop=self._loop)

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        waiting = self._conns.get(key)
        while waiting and not _is_quiet(waiting[0][0]):
            waiting.popleft()[0].close()
        if waiting is not None and not waiting:
            del self._conns[key]
        return await super()._get(key, traces)


def _is_quiet(connection: ResponseHandler) -> bool:
    """Nothing has come on an idle connection: neither its end, nor bytes that nobody asked for."""
    transport = connection.transport
    if transport is None:
        return False
    handle = transport.get_extra_info("socket")
    if handle is None or handle.fileno() < 0:
        return False
    asked = select.poll()
    asked.register(handle.fileno(), select.POLLIN)
    return not asked.poll(0)


class Answered(NamedTuple):
    """Status and headers of an answer, and its body to come."""

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]
    stream: Body


class Body(httpx.AsyncByteStream):
    """The bytes of an answer as they come. Iterating again goes on where it stopped.

    No wait for bytes outlasts the read timeout by more than a second, and none outlasts the
    connection. aiohttp 3.14 promises neither: on bytes that are not HTTP its parser lets go of
    the body before it fails, so the connection is closed, its timer stopped, and the reader of
    the body never told.
    """

    def __init__(
        self,
        answer: aiohttp.ClientResponse | Answer,
        transport: Transport,
        *,
        read_seconds: float,
    ) -> None:
        self._answer = answer
        self._transport: Transport | None = transport
        self._loop = asyncio.get_running_loop()
        self._patience = read_seconds + _GRACE_SECONDS
        self._is_over = False
        self._waiting_since: float | None = None
        # One timer for many waits: setting one for each piece would cost more than reading it.
        self._timer: asyncio.TimerHandle | None = None
        self._closing = self._watch_connection()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self.next_bytes()
        if not data:
            raise StopAsyncIteration
        return data

    def take_whole(self) -> bytes | None:
        """All of it, where nothing was read and the last byte is here already, as of most replies
        that are no streams; None: it is not. Never raises."""
        content = self._answer.content
        if self._is_over or not content.is_eof() or content.exception() is not None:
            return None
        data = content.read_nowait()
        self._is_over = True
        self.close()
        return data

    async def next_bytes(self) -> bytes:
        """The next bytes; none at the end, however often. Raises httpx's transport errors."""
        if self._is_over:
            return b""
        failure: Exception | None = None
        data = b""
        content = self._answer.content
        if not content.is_eof():
            self._waiting_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(self._patience, self._look_at_wait)
        try:
            data = await content.readany()
        except Exception as error:
            failure = self._told(error)
        finally:
            self._waiting_since = None
            # Also when cancelled: an upstream that nobody listens to has to stop.
            if not data:
                self.close()
        if failure is not None:
            raise failure  # without context, as above
        self._is_over = not data
        return data

    async def aclose(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        self.close()

    def close(self) -> None:
        """The same, without waiting: nothing here has to."""
        if self._transport is None:
            return
        self._transport.release()
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closing is not None:
            self._closing.remove_done_callback(self._on_lost)
            self._closing = None
        # Read to its end, the connection went back into the pool by itself.
        self._answer.close()

    def _watch_connection(self) -> asyncio.Future[None] | None:
        """The future of the connection's end, which tells the reader; None when it has ended."""
        connection = self._answer.connection
        if connection is None or connection.protocol is None:
            return None  # the body is here already, and the connection in the pool
        closing = connection.protocol.closed
        if closing is None:
            self._on_lost()
            return None
        # It lives as long as the connection, and its error has to be heard by somebody.
        closing.remove_done_callback(_hear)
        closing.add_done_callback(_hear)
        closing.add_done_callback(self._on_lost)
        return closing

    def _on_lost(self, _closing: asyncio.Future[None] | None = None) -> None:
        content = self._answer.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(self._lost())

    def _lost(self) -> Exception:
        """What the end of a connection is that aiohttp has no word for."""
        if self._transport is None or self._transport.is_closed:
            return httpx.ReadError("closed on this side")
        return NotHttp("bytes that are not HTTP")

    def _look_at_wait(self) -> None:
        self._timer = None
        if self._waiting_since is None:
            return  # the reader is busy elsewhere; its next wait sets the timer again
        left = self._waiting_since + self._patience - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look_at_wait)
        else:
            self._answer.content.set_exception(httpx.ReadTimeout("read"))

    def _told(self, error: Exception) -> Exception:
        # Between the end of the connection and the word of it, aiohttp has this for a reader.
        if type(error) is RuntimeError and self._answer.content.exception() is None:
            return self._lost()
        return translated(error)


def _hear(closing: asyncio.Future[None]) -> None:
    if not closing.cancelled():
        closing.exception()


def translated(error: Exception) -> Exception:
    """The httpx error that says the same as one of aiohttp's; others as they are."""
    message = str(error) or type(error).__name__
    match error:
        case aiohttp.ConnectionTimeoutError():
            return httpx.ConnectTimeout(message)
        case aiohttp.SocketTimeoutError():
            return httpx.ReadTimeout(message)
        case aiohttp.ClientConnectorDNSError():
            return NotResolved(message)
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return NotSecure(message)
        case aiohttp.ClientConnectorError():
            if isinstance(error.os_error, RefusedAddress):
                return NotAllowed(error.os_error.sentence)
            number = error.os_error.errno
            return httpx.ConnectError(os.strerror(number) if number else "no connection")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return httpx.RemoteProtocolError(message)
        case aiohttp.InvalidURL():
            return httpx.UnsupportedProtocol(message)
        case HttpProcessingError():  # of aiohttp's parser in Python
            return NotHttp(message)
        case aiohttp.ClientResponseError():
            return httpx.DecodingError(message)
        case aiohttp.ClientError() | OSError():
            return httpx.ReadError(message)
        case ValueError():  # a header with a line break in it
            return httpx.LocalProtocolError(message)
        case _:
            return error


@lru_cache(maxsize=256)
def _limits(connect: float, read: float, pool: float) -> aiohttp.ClientTimeout:
    # `connect` of aiohttp is the wait for a free connection and the making of one together.
    return aiohttp.ClientTimeout(
        total=None, connect=connect + pool, sock_connect=connect, sock_read=read
    )


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    return URL(url, encoded=True)
