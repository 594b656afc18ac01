"""One request to an Ollama server and its answer: what both clients stand on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Self

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.ollama.errors import find_error, read_error
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_object
from helmdash.providers.shared.ndjson import NdjsonDecoder
from helmdash.providers.wire import Object, WireError
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed, tidy
from helmdash.upstream.ollama.errors import OllamaError, OllamaTimeout
from helmdash.upstream.opened import Opened

# Loading a model from disk and reading a long prompt take minutes on small machines (seed).
DEFAULT_TIMEOUT_S = 120.0
# A list of models is there at once, or the server is not.
PING_TIMEOUT_S = 5.0

_MOST_REPLY_BYTES = 64 * 1024 * 1024
_MOST_ERROR_BYTES = 64 * 1024
_SUFFIXES = ("/v1", "/api")


class OllamaTransport:
    """Requests to one server. Owns its connections unless it is given a client."""

    def __init__(
        self,
        base_url: str,
        *,
        client: UpstreamClient | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        allow_private: bool = False,
    ) -> None:
        """`base_url` is the server's, with or without a slash, `/v1` or `/api` at its end.

        `allow_private`: it may be on this machine or in a private network. The one who configures
        the server may say so; for an address that a stranger chose, leave it.
        """
        if timeout_s <= 0:
            raise ValueError(f"timeout_s must be above 0, not {timeout_s}")
        self.endpoint = Endpoint(
            name="ollama",
            kind=ProviderKind.OLLAMA,
            base_url=root_url(base_url),
            api_key=api_key,
            allow_private=allow_private,
            read_timeout_s=timeout_s,
        )
        self.timeout_s = timeout_s
        self._client = client or UpstreamClient()
        self._owns_client = client is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its own connections; those of a client that was given stay open."""
        if self._owns_client:
            await self._client.aclose()

    async def ask(self, request: HttpRequest, *, timeout_s: float | None = None) -> Object:
        """The JSON object of the answer.

        `timeout_s` (seconds) is for all of it; None: the client's own. Raises OllamaError, and
        OllamaTimeout.
        """
        seconds = timeout_s or self.timeout_s
        with _told(request, seconds):
            async with asyncio.timeout(seconds):
                opened = await self._open(request, seconds)
                try:
                    data = await opened.read(_MOST_REPLY_BYTES)
                finally:
                    await opened.close()
        return self._object(data, request)

    async def lines(
        self, request: HttpRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[Object]:
        """The same of an answer that is a stream of JSON lines, one after the other.

        `timeout_s` (seconds) is for the first line, and for each one after it; None: the client's
        own. Raises as `ask` does.
        """
        seconds = timeout_s or self.timeout_s
        decoder = NdjsonDecoder()
        with _told(request, seconds):
            async with asyncio.timeout(seconds):
                opened = await self._open(request, seconds)
            try:
                async for data in opened.chunks():
                    for line in decoder.feed(data):
                        yield self._object(line, request)
                    if decoder.too_long:
                        raise OllamaError("a line of the stream is too long", endpoint=request.path)
                for line in decoder.flush():
                    yield self._object(line, request)
            finally:
                await opened.close()

    async def _open(self, request: HttpRequest, seconds: float) -> Opened:
        """The answer of a 200. Raises OllamaError for any other."""
        # One attempt: who calls decides what is worth another, and a server on the same machine
        # that is away is not back in a second.
        opened = await self._client.open(
            replace(self.endpoint, read_timeout_s=seconds), request, max_attempts=1
        )
        if opened.status < 400:
            return opened
        try:
            data = await opened.read(_MOST_ERROR_BYTES)
        except UpstreamFailed:
            data = b""  # the status alone says enough
        finally:
            await opened.close()
        raise self._refused(read_error(opened.status, data), request, opened.status)

    def _object(self, data: bytes, request: HttpRequest) -> Object:
        value = read_object(data)
        if value is None:
            raise OllamaError("the answer is no JSON object", endpoint=request.path, status=200)
        error = find_error(value)
        if error is not None:
            raise self._refused(error, request, 200)
        return value

    def _refused(self, error: WireError, request: HttpRequest, status: int) -> OllamaError:
        message = tidy(error.message, key=self.endpoint.api_key)
        return OllamaError(message, endpoint=request.path, status=status)


def root_url(base_url: str) -> str:
    """The server's address without slashes, `/v1` or `/api` at its end.

    >>> root_url("http://127.0.0.1:11434/v1/")
    'http://127.0.0.1:11434'
    """
    url = base_url.strip().rstrip("/")
    for suffix in _SUFFIXES:
        url = url.removesuffix(suffix).rstrip("/")
    return url


def milliseconds_since(began: float) -> int:
    """Whole milliseconds from a moment of `time.monotonic` until now."""
    return round((monotonic() - began) * 1000)


@contextmanager
def _told(request: HttpRequest, seconds: float) -> Iterator[None]:
    """What a client of Ollama raises instead of what the one client of all upstreams does."""
    try:
        yield
    except TimeoutError:
        raise _late(request, seconds) from None
    except UpstreamFailed as failure:
        if failure.kind.value.startswith("timeout"):
            raise _late(request, seconds) from None
        raise OllamaError(
            failure.message, endpoint=request.path, status=failure.http_status
        ) from None


def _late(request: HttpRequest, seconds: float) -> OllamaTimeout:
    return OllamaTimeout(f"no answer within {seconds:g} seconds", endpoint=request.path)
