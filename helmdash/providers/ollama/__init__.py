"""Ollama's own API, towards clients and as an upstream.

Clients have two formats: `CLIENT` that of `/api/chat`, `GENERATE_CLIENT` that of `/api/generate`.
An upstream is only ever asked for a chat, unless a client's own bytes pass. Source:
https://docs.ollama.com/api.
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.ollama.embeddings import embeddings_request, read_embeddings
from helmdash.providers.ollama.errors import read_error, write_error
from helmdash.providers.ollama.listing import models_request, read_models, write_model, write_models
from helmdash.providers.ollama.pass_request import pass_chat, pass_generate
from helmdash.providers.ollama.read_request import read_chat, read_generate
from helmdash.providers.ollama.reply import read_reply, write_chat_reply, write_generate_reply
from helmdash.providers.ollama.stream_reader import OllamaStreamReader
from helmdash.providers.ollama.stream_writer import OllamaStreamWriter
from helmdash.providers.ollama.write_request import write_request
from helmdash.providers.protocols import (
    ClientFormat,
    Mirror,
    PassThrough,
    ReplyContext,
    StreamReader,
    StreamWriter,
    UpstreamFormat,
)
from helmdash.providers.wire import ChatRequest

__all__ = ["CLIENT", "GENERATE_CLIENT", "UPSTREAM"]


class OllamaClientFormat:
    """See protocols.ClientFormat."""

    name = "ollama"
    kind = ProviderKind.OLLAMA
    wire = WireFormat.OLLAMA
    stream_type = "application/x-ndjson"
    too_long_words = "prompt too long; exceeded max context length by {over} tokens"
    counting = None

    read_request = staticmethod(read_chat)
    pass_request = staticmethod(pass_chat)
    write_reply = staticmethod(write_chat_reply)
    write_error = staticmethod(write_error)
    write_models = staticmethod(write_models)
    write_model = staticmethod(write_model)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """Nothing in it is hidden; `context_array` hides the one thing that may be."""
        return Mirror(OllamaStreamReader(request=request))

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """One JSON object a line."""
        return OllamaStreamWriter(answer=answer)


class OllamaGenerateClientFormat(OllamaClientFormat):
    """The same for the completion of a prompt."""

    name = "ollama_generate"

    read_request = staticmethod(read_generate)
    pass_request = staticmethod(pass_generate)
    write_reply = staticmethod(write_generate_reply)

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """The text stands at the top of each line."""
        return OllamaStreamWriter(answer=answer, as_generate=True)


class OllamaUpstreamFormat:
    """See protocols.UpstreamFormat."""

    kind = ProviderKind.OLLAMA
    wire = WireFormat.OLLAMA

    write_request = staticmethod(write_request)
    read_reply = staticmethod(read_reply)
    read_error = staticmethod(read_error)
    models_request = staticmethod(models_request)
    read_models = staticmethod(read_models)
    embeddings_request = staticmethod(embeddings_request)
    read_embeddings = staticmethod(read_embeddings)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """The ids of tool calls go on from those in the request."""
        return OllamaStreamReader(request=request)


CLIENT: ClientFormat = OllamaClientFormat()
GENERATE_CLIENT: ClientFormat = OllamaGenerateClientFormat()
UPSTREAM: UpstreamFormat = OllamaUpstreamFormat()
