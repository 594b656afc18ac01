"""The Anthropic Messages API: as clients speak it to us, and as we speak it to an upstream.

Sources: platform.claude.com/docs/en/api (messages, streaming, errors, models, token counting) and
the types of the official client.
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.anthropic.counting import AnthropicCounting
from helmdash.providers.anthropic.embeddings import embeddings_request, read_embeddings
from helmdash.providers.anthropic.errors import read_error, write_error
from helmdash.providers.anthropic.listing import (
    models_request,
    read_models,
    write_model,
    write_models,
)
from helmdash.providers.anthropic.pass_request import pass_request
from helmdash.providers.anthropic.read_request import read_request
from helmdash.providers.anthropic.reply import read_reply, write_reply
from helmdash.providers.anthropic.stream_reader import AnthropicStreamReader
from helmdash.providers.anthropic.stream_writer import AnthropicStreamWriter
from helmdash.providers.anthropic.write_request import write_request
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

__all__ = ["CLIENT", "UPSTREAM"]


class AnthropicClientFormat:
    """See protocols.ClientFormat."""

    name = "anthropic"
    kind = ProviderKind.ANTHROPIC
    wire = WireFormat.ANTHROPIC
    stream_type = "text/event-stream; charset=utf-8"
    too_long_words = "prompt is too long: {estimate} tokens > {limit} maximum"
    counting = AnthropicCounting()

    read_request = staticmethod(read_request)
    pass_request = staticmethod(pass_request)
    write_reply = staticmethod(write_reply)
    write_error = staticmethod(write_error)
    write_models = staticmethod(write_models)
    write_model = staticmethod(write_model)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """Every byte goes on: the format reports usage without being asked."""
        return Mirror(AnthropicStreamReader(request=request))

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """It always carries usage, whatever the request says."""
        return AnthropicStreamWriter(answer=answer)


class AnthropicUpstreamFormat:
    """See protocols.UpstreamFormat."""

    kind = ProviderKind.ANTHROPIC
    wire = WireFormat.ANTHROPIC

    write_request = staticmethod(write_request)
    read_reply = staticmethod(read_reply)
    read_error = staticmethod(read_error)
    models_request = staticmethod(models_request)
    read_models = staticmethod(read_models)
    embeddings_request = staticmethod(embeddings_request)
    read_embeddings = staticmethod(read_embeddings)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """What was asked for tells a tool's input from JSON that the client wanted as text."""
        return AnthropicStreamReader(request=request)


CLIENT: ClientFormat = AnthropicClientFormat()
UPSTREAM: UpstreamFormat = AnthropicUpstreamFormat()
