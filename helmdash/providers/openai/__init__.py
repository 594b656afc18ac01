"""The OpenAI format: everything base.Adapter asks for, and the embeddings and lists of a client.

The work is done in the modules beside this one; what single vendors do otherwise is in `quirks`.
"""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.openai.embeddings import (
    models_list_request,
    pass_embedding_request,
    read_embedding_reply,
    read_embedding_request,
    read_models_list,
    write_embedding_request,
    write_embeddings,
    write_models,
)
from helmdash.providers.openai.errors import read_error_body, write_error_body
from helmdash.providers.openai.pass_request import pass_chat_request
from helmdash.providers.openai.read_request import read_chat_request
from helmdash.providers.openai.reply import read_chat_reply, write_chat_reply
from helmdash.providers.openai.stream_filter import OpenAIStreamFilter
from helmdash.providers.openai.stream_reader import OpenAIStreamReader
from helmdash.providers.openai.stream_writer import start_stream
from helmdash.providers.openai.write_request import write_chat_request
from helmdash.providers.protocols import (
    Answer,
    HttpRequest,
    PassThrough,
    StreamReader,
    StreamWriter,
)
from helmdash.providers.wire import (
    ChatRequest,
    EmbeddingReply,
    EmbeddingRequest,
    Object,
    Reply,
    WireError,
)


class OpenAIAdapter:
    """The OpenAI format, both ways; see base.Adapter for what each method promises."""

    kind = ProviderKind.OPENAI
    stream_type = "text/event-stream"

    # --- client side

    def read_request(self, body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
        """Read a chat request. Raises BadRequest naming the member."""
        return read_chat_request(body, model=model, stream=stream)

    def write_reply(self, reply: Reply, *, answer: Answer) -> bytes:
        """A chat completion."""
        return write_chat_reply(reply, answer=answer)

    def stream_writer(self, *, answer: Answer, request: ChatRequest) -> StreamWriter:
        """Chunks as server-sent events, with usage for a client that asked for it."""
        return start_stream(answer=answer, request=request)

    def write_error(self, error: WireError) -> bytes:
        """OpenAI's error envelope."""
        return write_error_body(error)

    def read_embedding_request(self, body: Object) -> EmbeddingRequest:
        """Read a request for embeddings. Raises BadRequest naming the member."""
        return read_embedding_request(body)

    def write_embeddings(self, reply: EmbeddingReply, *, model: str, encoding: str) -> bytes:
        """Vectors as lists of numbers or in base64, as `encoding` says."""
        return write_embeddings(reply, model=model, encoding=encoding)

    def write_models(self, models: Iterable[tuple[str, str]], *, created: int) -> bytes:
        """A list of models from pairs of an id and who serves it."""
        return write_models(models, created=created)

    # --- upstream side

    def write_request(self, request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
        """A chat request. Raises CannotTranslate."""
        return write_chat_request(request, endpoint=endpoint, model=model)

    def pass_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
    ) -> HttpRequest:
        """A client's own bytes, changed only where they have to be."""
        return pass_chat_request(body, parsed, endpoint=endpoint, model=model, stream=stream)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """A stream on its way to a client of this format, usage hidden if it did not ask."""
        return OpenAIStreamFilter(hide_usage=not request.wants_usage)

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """A chat completion. Never raises."""
        return read_chat_reply(body)

    def read_error(self, status: int, body: bytes) -> WireError:
        """The error in whatever body. Never raises."""
        return read_error_body(status, body)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """Chunks to events."""
        return OpenAIStreamReader()

    def models_request(self, *, endpoint: Endpoint) -> HttpRequest:
        """Ask for the list of models."""
        return models_list_request(endpoint)

    def read_models(self, body: bytes) -> tuple[str, ...]:
        """The ids in that list. Raises ValueError."""
        return read_models_list(body)

    def embeddings_request(
        self, request: EmbeddingRequest, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Ask for embeddings."""
        return write_embedding_request(request, endpoint=endpoint, model=model)

    def pass_embeddings(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """A client's own request for embeddings, changed only in the model's id."""
        return pass_embedding_request(body, parsed, endpoint=endpoint, model=model)

    def read_embeddings(self, body: bytes) -> EmbeddingReply:
        """Vectors. Never raises."""
        return read_embedding_reply(body)


ADAPTER = OpenAIAdapter()
