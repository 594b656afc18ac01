"""The Anthropic Messages API, both ways: `ADAPTER`, and what only this vendor's clients ask for.

Sources: platform.claude.com/docs/en/api (messages, streaming, errors, models, token counting) and
the types of the official client. The work is done in the modules beside this one.
"""

from __future__ import annotations

from typing import ClassVar

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.anthropic import errors, listing
from helmdash.providers.anthropic import pass_request as passing
from helmdash.providers.anthropic import read_request as reading
from helmdash.providers.anthropic import reply as replies
from helmdash.providers.anthropic import write_request as writing
from helmdash.providers.anthropic.listing import (
    count_request,
    read_count,
    write_count,
    write_model,
    write_models,
)
from helmdash.providers.anthropic.stream_reader import AnthropicStreamReader
from helmdash.providers.anthropic.stream_writer import AnthropicStreamWriter
from helmdash.providers.protocols import Adapter, Answer, CannotTranslate, HttpRequest
from helmdash.providers.wire import (
    ChatRequest,
    EmbeddingReply,
    EmbeddingRequest,
    Object,
    Reply,
    WireError,
)

__all__ = [
    "ADAPTER",
    "count_request",
    "read_count",
    "read_count_request",
    "write_count",
    "write_model",
    "write_models",
]

_NO_EMBEDDINGS = "Anthropic has no embeddings; send them to a model of another upstream."


class AnthropicAdapter:
    """See `base.Adapter`."""

    kind: ProviderKind = ProviderKind.ANTHROPIC
    stream_type: str = "text/event-stream; charset=utf-8"

    _embeddings_error: ClassVar[WireError] = WireError(
        message=_NO_EMBEDDINGS, code="undecodable_reply"
    )

    def read_request(self, body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
        """Read a client's request. Raises BadRequest naming the member."""
        return reading.read_request(body, model=model, stream=stream)

    def write_reply(self, reply: Reply, *, answer: Answer) -> bytes:
        """A whole reply as Anthropic would send it."""
        return replies.write_reply(reply, answer=answer)

    def stream_writer(self, *, answer: Answer, request: ChatRequest) -> AnthropicStreamWriter:
        """Start a stream as Anthropic would send it; it always carries usage."""
        return AnthropicStreamWriter(answer=answer)

    def write_error(self, error: WireError) -> bytes:
        """An error body as Anthropic would send it."""
        return errors.write_error(error)

    def write_request(self, request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
        """The request for an upstream. Raises CannotTranslate."""
        return writing.write_request(request, endpoint=endpoint, model=model)

    def pass_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
    ) -> HttpRequest:
        """A client's own bytes; only the model's id may change, streams report usage anyway."""
        return passing.pass_request(body, parsed, endpoint=endpoint, model=model)

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """A whole reply of a 200. Never raises."""
        return replies.read_reply(body, request=request)

    def read_error(self, status: int, body: bytes) -> WireError:
        """The error of a status of 400 and more. Never raises."""
        return errors.read_error(status, body)

    def stream_reader(self, *, request: ChatRequest) -> AnthropicStreamReader:
        """Start reading a stream."""
        return AnthropicStreamReader(request=request)

    def models_request(self, *, endpoint: Endpoint) -> HttpRequest:
        """Ask for the list of models."""
        return listing.models_request(endpoint=endpoint)

    def read_models(self, body: bytes) -> tuple[str, ...]:
        """The ids in that list. Raises ValueError."""
        return listing.read_models(body)

    def embeddings_request(
        self, request: EmbeddingRequest, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Raises CannotTranslate: there are none."""
        raise CannotTranslate(_NO_EMBEDDINGS)

    def read_embeddings(self, body: bytes) -> EmbeddingReply:
        """There are none to read: the error says so."""
        return EmbeddingReply(model=None, vectors=(), error=self._embeddings_error)


def read_count_request(body: Object, *, model: str | None = None) -> ChatRequest:
    """Read a request to `/v1/messages/count_tokens`, which has no max_tokens. Raises BadRequest."""
    return reading.read_request(body, model=model, stream=False, is_count=True)


ADAPTER: Adapter = AnthropicAdapter()
