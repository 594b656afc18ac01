"""Gemini's `generateContent` and `streamGenerateContent`, towards clients and as an upstream.

Clients have two formats: `CLIENT` streams server-sent events (`?alt=sse`, what the SDKs ask for),
`ARRAY_CLIENT` one JSON array, as the API does when a client asks for nothing. They differ in
nothing else. Source: https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.gemini.counting import GeminiCounting
from helmdash.providers.gemini.embeddings import embeddings_request, read_embeddings
from helmdash.providers.gemini.errors import read_error, write_error
from helmdash.providers.gemini.listing import models_request, read_models, write_model, write_models
from helmdash.providers.gemini.pass_request import pass_array, pass_events
from helmdash.providers.gemini.read_request import read_request
from helmdash.providers.gemini.reply import read_reply, write_reply
from helmdash.providers.gemini.stream_reader import GeminiStreamReader
from helmdash.providers.gemini.stream_writer import GeminiStreamWriter
from helmdash.providers.gemini.write_request import write_request
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

__all__ = ["ARRAY_CLIENT", "CLIENT", "UPSTREAM"]


class GeminiClientFormat:
    """See protocols.ClientFormat."""

    name = "gemini"
    kind = ProviderKind.GEMINI
    wire = WireFormat.GEMINI
    stream_type = "text/event-stream"
    too_long_words = (
        "The input token count ({estimate}) exceeds the maximum number of tokens allowed ({limit})."
    )
    counting = GeminiCounting()

    read_request = staticmethod(read_request)
    pass_request = staticmethod(pass_events)
    write_reply = staticmethod(write_reply)
    write_error = staticmethod(write_error)
    write_models = staticmethod(write_models)
    write_model = staticmethod(write_model)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """Nothing in it is hidden; the reader tells events from an array by itself."""
        return Mirror(GeminiStreamReader(request=request))

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """Each event holds one GenerateContentResponse."""
        return GeminiStreamWriter(answer=answer)


class GeminiArrayClientFormat(GeminiClientFormat):
    """The same for streams of one JSON array."""

    name = "gemini_array"
    stream_type = "application/json"

    pass_request = staticmethod(pass_array)

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """Each item is one GenerateContentResponse."""
        return GeminiStreamWriter(answer=answer, as_array=True)


class GeminiUpstreamFormat:
    """See protocols.UpstreamFormat. It is always asked for server-sent events."""

    kind = ProviderKind.GEMINI
    wire = WireFormat.GEMINI

    write_request = staticmethod(write_request)
    read_reply = staticmethod(read_reply)
    read_error = staticmethod(read_error)
    models_request = staticmethod(models_request)
    read_models = staticmethod(read_models)
    embeddings_request = staticmethod(embeddings_request)
    read_embeddings = staticmethod(read_embeddings)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """The ids of tool calls go on from those in the request."""
        return GeminiStreamReader(request=request)


CLIENT: ClientFormat = GeminiClientFormat()
ARRAY_CLIENT: ClientFormat = GeminiArrayClientFormat()
UPSTREAM: UpstreamFormat = GeminiUpstreamFormat()
