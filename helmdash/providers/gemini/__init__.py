"""Gemini's `generateContent` and `streamGenerateContent`, as provider and towards clients.

Two adapters: `ADAPTER` streams server-sent events (`?alt=sse`, what the SDKs ask for), `ARRAY`
streams one JSON array, as the API does when a client asks for nothing. They differ in nothing
else. Source: https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.gemini import errors
from helmdash.providers.gemini import read_request as requests
from helmdash.providers.gemini import reply as replies
from helmdash.providers.gemini import write_request as upstream
from helmdash.providers.gemini.http import model_path
from helmdash.providers.gemini.reply import read_count, write_count, write_model, write_models
from helmdash.providers.gemini.stream_reader import GeminiReader
from helmdash.providers.gemini.stream_writer import GeminiWriter
from helmdash.providers.gemini.write_request import count_request
from helmdash.providers.protocols import Answer, HttpRequest
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
    "ARRAY",
    "GeminiAdapter",
    "count_request",
    "model_path",
    "read_count",
    "write_count",
    "write_model",
    "write_models",
]


@dataclass(frozen=True, slots=True)
class GeminiAdapter:
    """Gemini's wire format, both ways: see `base.Adapter`."""

    stream_type: str = "text/event-stream"
    as_events: bool = True
    kind: ProviderKind = ProviderKind.GEMINI

    # --- client side

    def read_request(self, body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
        """Read a client's request; the URL says the model and whether to stream."""
        return requests.read_request(body, model=model, stream=stream)

    def write_reply(self, reply: Reply, *, answer: Answer) -> bytes:
        """A whole GenerateContentResponse."""
        return replies.write_reply(reply, answer=answer)

    def stream_writer(self, *, answer: Answer, request: ChatRequest) -> GeminiWriter:
        """Start a stream of GenerateContentResponses."""
        return GeminiWriter(answer=answer, as_array=not self.as_events)

    def write_error(self, error: WireError) -> bytes:
        """An error as google.rpc.Status."""
        return errors.write_error(error)

    # --- upstream side

    def write_request(self, request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
        """The request for Gemini, always with `?alt=sse` where it streams."""
        return upstream.write_request(request, endpoint=endpoint, model=model)

    def pass_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
    ) -> HttpRequest:
        """A client's own bytes, untouched: the model stands in the path."""
        return upstream.pass_request(
            body, endpoint=endpoint, model=model, stream=stream, as_events=self.as_events
        )

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """Read a whole GenerateContentResponse."""
        return replies.read_reply(body, request=request)

    def read_error(self, status: int, body: bytes) -> WireError:
        """Read a google.rpc.Status."""
        return errors.read_error(status, body)

    def stream_reader(self, *, request: ChatRequest) -> GeminiReader:
        """Start reading a stream, of either form."""
        return GeminiReader(request=request)

    def models_request(self, *, endpoint: Endpoint) -> HttpRequest:
        """Ask for the list of models."""
        return upstream.models_request(endpoint=endpoint)

    def read_models(self, body: bytes) -> tuple[str, ...]:
        """The ids, without `models/`."""
        return replies.read_models(body)

    def embeddings_request(
        self, request: EmbeddingRequest, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Ask for embeddings."""
        return upstream.embeddings_request(request, endpoint=endpoint, model=model)

    def read_embeddings(self, body: bytes) -> EmbeddingReply:
        """Read embeddings."""
        return replies.read_embeddings(body)


ADAPTER = GeminiAdapter()
ARRAY = GeminiAdapter(stream_type="application/json", as_events=False)
