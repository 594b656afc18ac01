"""Ollama's `/api/chat` and `/api/generate`, as provider and towards clients.

Two adapters: `ADAPTER` reads and writes the chat's shape, `GENERATE` that of `/api/generate`.
Towards an Ollama server they differ only in where a client's own bytes go: every request that is
written anew is a chat. Source: https://docs.ollama.com/api.
"""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.ollama import read_request as requests
from helmdash.providers.ollama import reply as replies
from helmdash.providers.ollama import write_request as upstream
from helmdash.providers.ollama.listing import write_ps, write_show, write_tags, write_version
from helmdash.providers.ollama.stream_reader import OllamaReader, OllamaWriter
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
    "GENERATE",
    "OllamaAdapter",
    "write_ps",
    "write_show",
    "write_tags",
    "write_version",
]


@dataclass(frozen=True, slots=True)
class OllamaAdapter:
    """Ollama's wire format, both ways: see `base.Adapter`."""

    as_generate: bool = False
    kind: ProviderKind = ProviderKind.OLLAMA
    stream_type: str = "application/x-ndjson"

    # --- client side

    def read_request(self, body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
        """Read a client's request; it streams unless it says that it does not."""
        if self.as_generate:
            return requests.read_generate(body, model=model, stream=stream)
        return requests.read_chat(body, model=model, stream=stream)

    def write_reply(self, reply: Reply, *, answer: Answer) -> bytes:
        """A whole reply."""
        return replies.write_reply(reply, answer=answer, as_generate=self.as_generate)

    def stream_writer(self, *, answer: Answer, request: ChatRequest) -> OllamaWriter:
        """Start a stream of lines."""
        return OllamaWriter(answer=answer, as_generate=self.as_generate)

    def write_error(self, error: WireError) -> bytes:
        """An error."""
        return replies.write_error(error)

    # --- upstream side

    def write_request(self, request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
        """The request for Ollama, as a chat."""
        return upstream.write_request(request, endpoint=endpoint, model=model)

    def pass_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
    ) -> HttpRequest:
        """A client's own bytes; only the model's id is changed."""
        method = "generate" if self.as_generate else "chat"
        return upstream.pass_request(
            body, parsed, endpoint=endpoint, model=model, stream=stream, method=method
        )

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """Read a whole reply, of either method."""
        return replies.read_reply(body, request=request)

    def read_error(self, status: int, body: bytes) -> WireError:
        """Read an error."""
        return replies.read_error(status, body)

    def stream_reader(self, *, request: ChatRequest) -> OllamaReader:
        """Start reading a stream, of either method."""
        return OllamaReader(request=request)

    def models_request(self, *, endpoint: Endpoint) -> HttpRequest:
        """Ask for the list of models."""
        return upstream.models_request(endpoint=endpoint)

    def read_models(self, body: bytes) -> tuple[str, ...]:
        """The ids, with their tags."""
        return replies.read_models(body)

    def embeddings_request(
        self, request: EmbeddingRequest, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Ask for embeddings."""
        return upstream.embeddings_request(request, endpoint=endpoint, model=model)

    def read_embeddings(self, body: bytes) -> EmbeddingReply:
        """Read embeddings."""
        return replies.read_embeddings(body)


ADAPTER = OllamaAdapter()
GENERATE = OllamaAdapter(as_generate=True)
