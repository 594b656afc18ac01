"""The OpenAI chat format: as clients speak it to us, and as we speak it to an upstream.

What single vendors among the many that speak it do otherwise is in `quirks`.
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.openai.codex_models import with_codex_models
from helmdash.providers.openai.embeddings import embeddings_request, read_embeddings
from helmdash.providers.openai.errors import read_error, write_error
from helmdash.providers.openai.listing import models_request, read_models, write_model, write_models
from helmdash.providers.openai.pass_request import pass_request
from helmdash.providers.openai.read_request import read_request
from helmdash.providers.openai.reply import read_reply, write_reply
from helmdash.providers.openai.stream_filter import OpenAIStreamFilter
from helmdash.providers.openai.stream_reader import OpenAIStreamReader
from helmdash.providers.openai.stream_writer import OpenAIStreamWriter
from helmdash.providers.openai.write_request import write_request
from helmdash.providers.protocols import (
    ClientFormat,
    PassThrough,
    ReplyContext,
    StreamReader,
    StreamWriter,
    UpstreamFormat,
)
from helmdash.providers.wire import ChatRequest, Reply

__all__ = ["CLIENT", "UPSTREAM", "with_codex_models"]


class OpenAIClientFormat:
    """See protocols.ClientFormat."""

    name = "openai"
    kind = ProviderKind.OPENAI
    wire = WireFormat.CHAT
    stream_type = "text/event-stream"
    too_long_words = (
        "This model's maximum context length is {limit} tokens. "
        "However, your request is about {estimate} tokens."
    )
    counting = None

    read_request = staticmethod(read_request)
    pass_request = staticmethod(pass_request)
    write_reply = staticmethod(write_reply)
    write_error = staticmethod(write_error)
    write_models = staticmethod(write_models)
    write_model = staticmethod(write_model)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """Usage that the client did not ask for stays here."""
        return OpenAIStreamFilter(hide_usage=not request.wants_usage)

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """Chunks as server-sent events, with usage for a client that asked for it."""
        return OpenAIStreamWriter(answer=answer, wants_usage=request.wants_usage)


class OpenAIUpstreamFormat:
    """See protocols.UpstreamFormat."""

    kind = ProviderKind.OPENAI
    wire = WireFormat.CHAT

    write_request = staticmethod(write_request)
    read_error = staticmethod(read_error)
    models_request = staticmethod(models_request)
    read_models = staticmethod(read_models)
    embeddings_request = staticmethod(embeddings_request)
    read_embeddings = staticmethod(read_embeddings)

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """Never raises. The format has one form of reply, whatever the request was."""
        return read_reply(body)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """A new reader for each stream. The format has one form of stream, whatever the request
        was."""
        return OpenAIStreamReader()


CLIENT: ClientFormat = OpenAIClientFormat()
UPSTREAM: UpstreamFormat = OpenAIUpstreamFormat()
