"""A call with its two formats: how its request is written, its reply read and written again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter_ns

from helmdash.core.upstreams.endpoints import LEAST_SECRET_CHARS, Endpoint, ProviderKind
from helmdash.gateway import context_array
from helmdash.gateway.caring import is_overflow
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.pipes import Pipe, native_pipe, translating_pipe
from helmdash.gateway.refusals import Refusal, bad_request, in_a_circle
from helmdash.gateway.responder import Header, Responder, passed_headers
from helmdash.providers import gemini
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.ollama.context_array import without_context
from helmdash.providers.ollama.shown import with_num_ctx
from helmdash.providers.openai import embeddings
from helmdash.providers.protocols import Answer, HttpRequest
from helmdash.providers.registry import UPSTREAMS
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.wire import (
    ChatRequest,
    EmbeddingReply,
    EmbeddingRequest,
    Object,
    Reply,
    WireError,
)
from helmdash.upstream.opened import Opened

_STREAM_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl")
_JSON: Header = (b"content-type", b"application/json")
# What a client may say to a provider of its own format, besides its body. Nothing else of its
# headers goes on: not its key, which is ours, and not what steers the connection.
_CLIENT_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
# How many gateways of ours a request has come through: an upstream's address may lead back here.
_FROM_US = re.compile(rb"helmdash(?: \(hop (\d)\))?")
# A team's gateway behind a person's own is sensible; more than that is a circle.
_MOST_HOPS = 3


class Job:
    """What every kind of call has."""

    def __init__(
        self, exchange: Exchange, responder: Responder, headers: Mapping[bytes, bytes]
    ) -> None:
        assert exchange.endpoint is not None
        self.exchange = exchange
        self.endpoint: Endpoint = exchange.endpoint
        self.responder = responder
        self.client = responder.client
        self.upstream = UPSTREAMS[self.endpoint.kind]
        self.is_native = self.client.kind is self.endpoint.kind
        self.answer = Answer(
            call_id=exchange.call_id,
            model=exchange.model,
            created=int(exchange.started_at.timestamp()),
        )
        self.open_pipe: Pipe | None = None  # while a stream runs
        self._client_headers = headers
        key = (self.endpoint.api_key or "").encode()
        self._key = key if len(key) >= LEAST_SECRET_CHARS else None

    @property
    def model(self) -> str:
        """The upstream's own id of the model."""
        return self.exchange.upstream_model or self.exchange.model

    def read_whole(self, data: bytes) -> Reply:
        """Read a whole reply of the upstream, for the record."""
        raise NotImplementedError

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        """That reply as the client wants it, and its content type."""
        raise NotImplementedError

    def pass_whole(self, data: bytes) -> bytes:
        """A whole reply for a client of the upstream's own format."""
        return data

    def is_streamed(self, opened: Opened) -> bool:
        """Whether what comes is to be handed on piece by piece."""
        return False

    def pipe(self) -> Pipe:
        """What a stream goes through."""
        raise NotImplementedError

    def write_request(self, body: bytes, parsed: Object) -> HttpRequest:
        """The upstream's request. Raises Refusal when its format cannot say it."""
        try:
            request = self._written(body, parsed)
        except CannotTranslate as error:
            where = f" The upstream {self.endpoint.name} speaks the API of {self.endpoint.kind}."
            refusal = bad_request(str(error) if self.is_native else f"{error}{where}")
            raise Refusal(refusal.error, records=True) from None
        if self.is_native:
            request = self._with_client_headers(request)
        hops = self._hops()
        if hops == 0:
            return request
        return replace(
            request, headers=(*request.headers, ("user-agent", f"helmdash (hop {hops})"))
        )

    def _hops(self) -> int:
        """How many gateways of ours stand before this one. Raises Refusal: it is a circle."""
        found = _FROM_US.fullmatch(self._client_headers.get(b"user-agent", b""))
        if found is None:
            return 0
        hops = int(found[1] or 0) + 1
        if hops > _MOST_HOPS:
            raise in_a_circle(self.endpoint.name)
        return hops

    def _written(self, body: bytes, parsed: Object) -> HttpRequest:
        raise NotImplementedError

    def headers(self, *, level: str = "unknown") -> list[Header]:
        """Our own headers: the call, its level as far as it is known, and what we took."""
        own = self.exchange.own_ms(perf_counter_ns())
        headers = [
            (b"x-helmdash-call-id", self.exchange.call_id.encode()),
            (b"x-helmdash-level", level.encode()),
            (b"x-helmdash-overhead-ms", f"{own:.2f}".encode()),
        ]
        warning = self.exchange.notes.get("budget_warning")
        if warning:
            value = str(warning).encode("latin-1", "replace")
            headers.append((b"x-helmdash-budget-warning", value))
        if self.exchange.care is not None:
            headers += self.exchange.care.headers()
        return headers

    async def shortened(self, error: WireError) -> HttpRequest | None:
        """A shorter request after this refusal of the upstream's; None where there is none."""
        return None

    def passed_headers(self, opened: Opened) -> list[Header]:
        """The upstream's headers that the client may see; none of them holds its key."""
        passed = passed_headers(opened.headers)
        if self._key is None:
            return passed
        return [(name, value) for name, value in passed if self._key not in value]

    def without_key(self, data: bytes) -> bytes:
        """The bytes without the provider's key, which some upstreams repeat in their errors."""
        if self._key is not None and self._key in data:
            return data.replace(self._key, b"[key]")
        return data

    def _with_client_headers(self, request: HttpRequest) -> HttpRequest:
        told = [
            (name, value.decode("latin-1"))
            for name in _CLIENT_HEADERS
            if (value := self._client_headers.get(name.encode())) is not None
        ]
        if not told:
            return request
        names = {name for name, _ in told}
        kept = [(name, value) for name, value in request.headers if name.lower() not in names]
        return replace(request, headers=(*kept, *told))


class ChatJob(Job):
    """A request for a reply."""

    def __init__(
        self,
        exchange: Exchange,
        request: ChatRequest,
        responder: Responder,
        headers: Mapping[bytes, bytes],
    ) -> None:
        super().__init__(exchange, responder, headers)
        self.request = request
        self._drops_context = context_array.is_dropped(exchange, request, headers)

    async def shortened(self, error: WireError) -> HttpRequest | None:
        """Where remediation starts the conversation afresh: what goes on of it."""
        care = self.exchange.care
        if care is None or care.shorten is None or not is_overflow(error):
            return None
        sending = await care.shorten()
        if sending is None:
            return None
        self.request = sending.request
        return self.write_request(sending.body, sending.parsed)

    def is_streamed(self, opened: Opened) -> bool:
        """As was asked; but an error in a 200 may come whole where a stream was due."""
        if not self.request.stream:
            return False
        kind = opened.headers.get("content-type", "")
        if kind.startswith(_STREAM_TYPES):
            return True
        return self.is_native and self.client is gemini.ARRAY_CLIENT

    def pipe(self) -> Pipe:
        """The upstream's own bytes where it speaks the client's format, else a translation."""
        writer = self.client.stream_writer(answer=self.answer, request=self.request)
        if self._drops_context:
            return context_array.pipe(self.upstream.stream_reader(request=self.request), writer)
        if self.is_native:
            return native_pipe(self.client, self.request, writer)
        return translating_pipe(self.upstream.stream_reader(request=self.request), writer)

    def pass_whole(self, data: bytes) -> bytes:
        """The same bytes, but for an array that nobody asked for."""
        return without_context(data) if self._drops_context else data

    def read_whole(self, data: bytes) -> Reply:
        """Read the reply. A 200 with nothing in it is no error, but has a cause of its own."""
        if not data.strip():
            return Reply()
        return self.upstream.read_reply(data, request=self.request)

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        """Write the reply; as a stream, if that was asked for and the upstream did not do it."""
        if not self.request.stream:
            return self.client.write_reply(reply, answer=self.answer), _JSON
        writer = self.client.stream_writer(answer=self.answer, request=self.request)
        parts = [writer.write(event) for event in events_of(reply)]
        kind = (b"content-type", self.client.stream_type.encode("latin-1"))
        return b"".join(parts) + writer.close(), kind

    def _written(self, body: bytes, parsed: Object) -> HttpRequest:
        if not self.is_native:
            _check_choices(self.request)
            return self.upstream.write_request(
                replace(self.request, num_ctx=self.exchange.window),
                endpoint=self.endpoint,
                model=self.model,
            )
        if self.exchange.window is not None:
            body, parsed = with_num_ctx(body, parsed, self.exchange.window)
        return self.client.pass_request(
            body, parsed, endpoint=self.endpoint, model=self.model, stream=self.request.stream
        )


def _check_choices(request: ChatRequest) -> None:
    """Raises CannotTranslate for what would silently be answered otherwise than asked."""
    several = request.extra.get("n")
    if isinstance(several, int) and several > 1:
        raise CannotTranslate("n: only one choice can be had of this model.")
    if request.extra.get("logprobs") is True:
        raise CannotTranslate("logprobs: this model's API does not give them.")


class EmbeddingJob(Job):
    """A request for embeddings, in OpenAI's shape."""

    _vectors: EmbeddingReply
    _request: EmbeddingRequest | None = None

    def read_whole(self, data: bytes) -> Reply:
        """Read the vectors; there is no text in such a reply."""
        self._vectors = self.upstream.read_embeddings(data)
        found = self._vectors
        return Reply(model=found.model, usage=found.usage, error=found.error)

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        """Write the vectors in the encoding that was asked for."""
        encoding = self._request.encoding if self._request else "float"
        return (
            embeddings.write_embeddings(
                self._vectors, model=self.exchange.model, encoding=encoding
            ),
            _JSON,
        )

    def _written(self, body: bytes, parsed: Object) -> HttpRequest:
        """Raises BadRequest for what no other provider could be told, and CannotTranslate."""
        if self.endpoint.kind is ProviderKind.OPENAI:
            return embeddings.pass_embedding_request(
                body, parsed, endpoint=self.endpoint, model=self.model
            )
        self._request = embeddings.read_embedding_request(parsed)
        return self.upstream.embeddings_request(
            self._request, endpoint=self.endpoint, model=self.model
        )
