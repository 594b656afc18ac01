"""The client of every upstream: opens a call, retries where that is safe, reports every attempt."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
import httpx

from helmdash.core.upstreams.addresses import with_setting
from helmdash.core.upstreams.endpoints import PRIVATE_SETTING, Endpoint, EndpointSource
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream import redirects, refusals, retries
from helmdash.upstream.failures import FailureKind, UpstreamFailed, failure_of, tidy
from helmdash.upstream.guard import Refused, checked_url
from helmdash.upstream.opened import Opened
from helmdash.upstream.transport import MOST_CONNECTIONS, Answered, Transport

_AGENT = ("user-agent", "helmdash")
_PLAIN = ("accept-encoding", "identity")
# What an attempt that is repeated says of its error: enough to read, not worth waiting for.
_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds that each phase may take; reading is the endpoint's own affair."""

    connect: float = 10.0  # across the world and through a TLS handshake, with packets lost
    write: float = 60.0  # 8 MiB over a slow line
    pool: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A whole answer, whatever its status. `headers` and `attempts` as Opened has them."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    attempts: tuple[Mapping[str, object], ...]


class UpstreamClient:
    """One for a process and its event loop. Keeps connections; `aclose` ends them."""

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        resolver: aiohttp.abc.AbstractResolver | None = None,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        """`resolver` stands in for the system's, in tests."""
        self._timeouts = timeouts or Timeouts()
        tls = tls_context()
        # Of each policy its own, so that no connection serves both.
        self._transports = {
            allow: Transport(
                allow_private=allow,
                tls=tls,
                resolver=resolver,
                most_connections=most_connections,
            )
            for allow in (False, True)
        }

    async def open(
        self, endpoint: Endpoint, request: HttpRequest, *, max_attempts: int = 3
    ) -> Opened:
        """Send a request and wait for the status and headers of its answer, whatever they are.

        Connect errors, 429 and 5xx are tried again, up to `max_attempts` in all. What may have
        reached a model without an answer never is: a read timeout, a 504, or a connection that
        broke once something was sent. The provider may be working, and charging. The last answer
        is handed on.
        Raises UpstreamFailed when there is none. Cancelling it closes the connection.
        """
        return await _Call(self, endpoint, request).run(max_attempts)

    async def fetch(
        self, endpoint: Endpoint, request: HttpRequest, *, limit_bytes: int, max_attempts: int = 3
    ) -> Fetched:
        """`open`, and the body to its end. Raises UpstreamFailed, also for a longer one."""
        opened = await self.open(endpoint, request, max_attempts=max_attempts)
        try:
            body = await opened.read(limit_bytes)
        finally:
            await opened.close()
        return Fetched(
            status=opened.status, headers=opened.headers, body=body, attempts=opened.attempts
        )

    async def send(self, endpoint: Endpoint, request: HttpRequest, url: str) -> Answered:
        """One attempt at a checked URL. Raises what the transport raises."""
        limits = self._timeouts
        return await self._transports[endpoint.allow_private].open(
            request.method or ("GET" if request.body is None else "POST"),
            url,
            [*request.headers, _PLAIN, *_agent_of(request)],
            request.body or b"",
            connect=limits.connect,
            read=endpoint.read_timeout_s,
            write=limits.write,
            pool=limits.pool,
        )

    async def aclose(self) -> None:
        """Close every connection, also those of calls under way."""
        for transport in self._transports.values():
            await transport.aclose()


@contextmanager
def opened_beside(
    name: str, *, timeouts: Timeouts | None = None
) -> Iterator[tuple[UpstreamClient, asyncio.AbstractEventLoop]]:
    """A client for a thread that does not wait for each request, and the loop that these run on.

    name: of the loop's thread. Leave it when all that was begun is done: what is under way is
    cancelled.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        client = UpstreamClient(timeouts=timeouts)
        thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
        thread.start()
        try:
            yield client, loop
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            runner.run(client.aclose())


class _Call:
    """One request, and every attempt at it."""

    def __init__(self, client: UpstreamClient, endpoint: Endpoint, request: HttpRequest) -> None:
        self._client = client
        self._endpoint = endpoint
        self._request = request
        self._attempts: list[Mapping[str, object]] = []
        self._started = self._began = time.monotonic()
        self._number = 0
        self._hops = 0

    async def run(self, max_attempts: int) -> Opened:
        url = self._first_url()
        while True:
            self._number += 1
            self._began = time.monotonic()
            is_last = self._number - self._hops >= max_attempts
            try:
                answered = await self._client.send(self._endpoint, self._request, url)
            except Exception as error:
                await self._after_failure(error, is_last=is_last)
                continue
            opened = Opened(answered, name=self._endpoint.name, key=self._endpoint.api_key)
            if opened.status in redirects.RANGE:
                url = self._next_url(url, opened)
            elif is_last or not await self._waited(opened):
                self._note(status=opened.status)
                opened.attempts = tuple(self._attempts)
                return opened

    def _first_url(self) -> str:
        try:
            return checked_url(self._endpoint, self._request.path)
        except Refused as refused:
            sentence = f"Upstream {self._endpoint.name} may not be called: {refused}"
            failure = UpstreamFailed(FailureKind.REFUSED_BY_GUARD, sentence)
            raise self._told(self._explained(failure)) from None

    async def _after_failure(self, error: Exception, *, is_last: bool) -> None:
        failure = failure_of(error, name=self._endpoint.name, key=self._endpoint.api_key)
        is_post = self._request.body is not None
        if is_last or not retries.is_safe_to_repeat(failure.kind, is_post=is_post):
            raise self._told(self._explained(failure)) from error
        wait = retries.wait_seconds(self._number)
        self._note(error=failure.kind, message=failure.message, waited_ms=_ms(wait))
        await asyncio.sleep(wait)

    async def _waited(self, opened: Opened) -> bool:
        """Whether this answer is worth another attempt, and the wait for it is over."""
        if opened.status < 400 or not retries.is_worth_another(opened.status, opened.headers):
            return False
        wait = retries.asked_seconds(opened.headers)
        if wait is None:
            wait = retries.wait_seconds(self._number)
        if wait > retries.LONGEST_ASKED_SECONDS:
            return False
        body = await self._error_of(opened)
        if opened.status == retries.TOO_MANY and refusals.is_about_money(opened.status, body):
            return False
        await opened.close()
        message = refusals.words_of(opened.status, body, key=self._endpoint.api_key)
        self._note(status=opened.status, message=message, waited_ms=_ms(wait))
        await asyncio.sleep(wait)
        return True

    async def _error_of(self, opened: Opened) -> bytes:
        """The beginning of an error's body, which stays there to be read; none where it fails."""
        try:
            async with asyncio.timeout(_ERROR_SECONDS):
                return await opened.peek(_ERROR_BYTES)
        except (UpstreamFailed, TimeoutError):
            return b""
        except BaseException:
            opened.close_now()  # cancelled: nobody is left to read it
            raise

    def _next_url(self, url: str, opened: Opened) -> str:
        opened.close_now()
        self._hops += 1
        try:
            target = redirects.target(
                url,
                opened.headers.get("location"),
                status=opened.status,
                is_post=self._request.body is not None,
                hops=self._hops,
            )
        except Refused as refused:
            where = tidy(str(refused), key=self._endpoint.api_key)
            failure = UpstreamFailed(
                FailureKind.REDIRECTED,
                f"Upstream {self._endpoint.name} redirects {where}",
                http_status=opened.status,
            )
            raise self._told(failure, status=opened.status) from None
        self._note(status=opened.status, message="Followed to the same host.")
        return target

    def _explained(self, failure: UpstreamFailed) -> UpstreamFailed:
        """A refusal of the guard names what allows the address: a setting, or the row's own box."""
        is_ours = failure.kind is FailureKind.REFUSED_BY_GUARD
        if is_ours and self._endpoint.source is EndpointSource.ENVIRONMENT:
            failure.message = with_setting(failure.message, PRIVATE_SETTING)
        return failure

    def _told(self, failure: UpstreamFailed, **facts: object) -> UpstreamFailed:
        self._note(**facts, error=failure.kind, message=failure.message)
        failure.attempts = tuple(self._attempts)
        return failure

    def _note(self, **facts: object) -> None:
        now = time.monotonic()
        self._attempts.append(
            {
                "number": max(self._number, 1),
                "at_ms": _ms(self._began - self._started),
                "took_ms": _ms(now - self._began),
                **{
                    name: value.value if isinstance(value, FailureKind) else value
                    for name, value in facts.items()
                },
            }
        )


def _agent_of(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    """Our name, unless the request says it already."""
    return () if "user-agent" in [name for name, _ in request.headers] else (_AGENT,)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def tls_context() -> ssl.SSLContext:
    """Whom calls trust, and `manage.py doctor` with them."""
    # The authorities of httpx's bundle, for systems that come without any, and the system's own.
    context = httpx.create_ssl_context()
    context.load_default_certs()
    # Set from Python 3.13 on: authorities that a company made by openssl's defaults, which every
    # other client there takes, would be refused for what their certificates leave unsaid.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context
