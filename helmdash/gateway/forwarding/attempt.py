"""One attempt at an upstream: the request, and how its reply is understood."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.core.values import quick_value
from helmdash.gateway.forwarding.streams.pipes import Pipe
from helmdash.gateway.responder import Header
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Reply, WireError
from helmdash.upstream.opened import Opened


class Translator(Protocol):
    """What becomes of a reply, for one kind of call.

    `is_native`: the client speaks the upstream's own format, so that its bytes go on as they are.
    """

    @property
    def is_native(self) -> bool: ...

    def is_streamed(self, content_type: str) -> bool:
        """Whether what comes is to be forwarded piece by piece."""

    def read_error(self, status: int, data: bytes) -> WireError:
        """What an upstream says that refuses (a status of 400 and more). Never raises."""

    def read_whole(self, data: bytes) -> Reply:
        """Read a whole reply of a 200, for the record. Never raises."""

    def pass_whole(self, data: bytes) -> bytes:
        """That reply's bytes for a client of the upstream's own format."""

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        """That reply as another client wants it, and its content type."""

    def stream_type(self, content_type: str) -> str:
        """The content type of the client's stream; `content_type` is the upstream's."""

    def pipe(self) -> Pipe:
        """What a stream goes through."""


@quick_value(frozen=True, slots=True, kw_only=True)
class Attempt:
    """`secret` is the upstream's key, which some repeat in their errors; None: it is too short."""

    endpoint: Endpoint
    http_request: HttpRequest
    translator: Translator
    secret: bytes | None

    def without_secret(self, data: bytes) -> bytes:
        """The bytes as a client may see them."""
        return data if self.secret is None else data.replace(self.secret, b"[key]")

    async def read(self, opened: Opened, limit_bytes: int) -> bytes:
        """The whole body as a client may see it. Raises UpstreamFailed."""
        data = await opened.read(limit_bytes)
        return data if self.secret is None else data.replace(self.secret, b"[key]")

    def headers_without_secret(self, headers: Iterable[Header]) -> tuple[Header, ...]:
        """Those of the headers that do not hold it."""
        if self.secret is None:
            return tuple(headers)
        return tuple((name, value) for name, value in headers if self.secret not in value)
