"""Answering one client: a whole body, a stream, or an error, with our headers beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus

from helmdash.core.upstreams.endpoints import WireFormat
from helmdash.core.values import quick_value
from helmdash.doors.answers import send_at_once
from helmdash.doors.asgi import Connection, Message, Send
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import WireError
from helmdash.upstream.failures import CODES, FailureKind

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
# What an upstream says to the client, and not to us: everything else stays here. No cookie, no
# framing, nothing that tells of the connection behind.
_PASSED = frozenset(
    {
        "retry-after",
        "retry-after-ms",
        "request-id",
        "x-request-id",
        "openai-processing-ms",
        "openai-version",
        "openai-model",
        "x-should-retry",
    }
)
_PASSED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
# Proxies in front of us must hand on each chunk as it comes.
_STREAMING: tuple[Header, ...] = (
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
# What no browser draws as a page. An upstream may call its reply anything, and a form of another
# site can ask for one by a key in the address (Gemini's clients do): as a page it would be of our
# origin, with whoever is signed in there.
_INERT = frozenset(
    {
        b"application/json",
        b"application/jsonl",
        b"application/problem+json",
        b"application/x-ndjson",
        b"text/event-stream",
        b"text/plain",
    }
)
_NO_PAGE: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"x-content-type-options", b"nosniff"),
)
# The longest header that we hand on.
_HEADER_CHARS = 1024


@quick_value(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole response: `body` with `status`, or an `error` for the client's format to word (None:
    all went well).

    Where a stream has begun, the error ends it.
    """

    headers: Sequence[Header]
    status: int = 200
    body: bytes = b""
    error: WireError | None = None

    @property
    def is_good(self) -> bool:
        """The client has what it asked for."""
        return self.error is None and self.status < HTTPStatus.BAD_REQUEST


class Responder:
    """Sends one response; knows whether it has begun."""

    def __init__(
        self, send: Send, client: ClientFormat, connection: Connection | None = None
    ) -> None:
        """client: the format that the client speaks. connection: its own; None: it is not ours."""
        self._send = send
        self.connection = connection
        self._fail: Callable[[WireError], bytes] | None = None  # while a stream is open
        self.client = client
        self.has_begun = False

    async def respond(self, response: Response) -> None:
        """The whole of it; or the end of the stream, where one is open."""
        if self.has_begun:
            if response.error is None or self._fail is None:
                return
            if not self._breaks_off(response.error):
                await self.chunk(self._fail(response.error), is_last=True)
        elif response.error is not None:
            await self.error(response.error, response.headers)
        else:
            await self.whole(response.status, response.body, response.headers)

    def _breaks_off(self, error: WireError) -> bool:
        """Whether the open stream ends as its upstream's did: by a connection that is closed.

        In OpenAI's chat API alone, which has no event for it. Agents ask again after a connection
        that broke; an error within the stream is the last word to them.
        """
        connection = self.connection
        if error.code != CODES[FailureKind.CLOSED_EARLY] or connection is None:
            return False
        return self.client.wire is WireFormat.CHAT and connection.break_off()

    async def whole(self, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
        """A complete response. Without a content type among the headers, it is JSON."""
        sent = list(headers)
        kinds = [value for name, value in sent if name == b"content-type"]
        sent += _beside(kinds[0]) if kinds else (JSON,)
        self.has_begun = True
        await send_at_once(self.connection, self._send, status, sent, body)

    async def pass_on(self, message: Message) -> None:
        """A message of an answer that another process makes."""
        self.has_begun = True
        await self._send(message)

    async def error(self, error: WireError, headers: Iterable[Header] = ()) -> None:
        """An error in the client's own protocol."""
        sent = list(headers)
        if error.retry_after_s is not None and not any(n == b"retry-after" for n, _ in sent):
            sent.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
        if error.status in (408, 413) and (b"connection", b"close") not in sent:
            # The rest of the body is not going to be read.
            sent.append((b"connection", b"close"))
        await self.whole(error.status or 502, self.client.write_error(error), sent)

    async def begin_stream(
        self, content_type: str, headers: Iterable[Header], *, fail: Callable[[WireError], bytes]
    ) -> None:
        """Start a streamed response. fail: the bytes that end it with an error."""
        self.has_begun = True
        self._fail = fail
        kind = content_type.encode("latin-1")
        sent = [*headers, (b"content-type", kind), *_beside(kind), *_STREAMING]
        await self._send({"type": "http.response.start", "status": 200, "headers": sent})

    async def chunk(self, data: bytes, *, is_last: bool) -> None:
        """Some bytes of a stream; none are nothing to send, unless they are its end."""
        if is_last:
            self._fail = None
        elif not data or (self.connection is not None and self.connection.write_piece(data)):
            return
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})


def passed_headers(headers: Mapping[str, str]) -> list[Header]:
    """The upstream's headers that a client may see."""
    passed = []
    for name, value in headers.items():
        if name in _PASSED or name.startswith(_PASSED_PREFIXES):
            passed.append((name.encode("latin-1"), _safe(value)))
    return passed


def _beside(content_type: bytes) -> tuple[Header, ...]:
    """What goes beside this content type. Of several, a browser takes the last."""
    if content_type in _INERT:  # as nearly always
        return ()
    is_inert = content_type.partition(b";")[0].strip().lower() in _INERT
    return () if is_inert and b"," not in content_type else _NO_PAGE


def _safe(value: str) -> bytes:
    return (
        value[:_HEADER_CHARS].encode("latin-1", "replace").replace(b"\r", b"").replace(b"\n", b"")
    )
