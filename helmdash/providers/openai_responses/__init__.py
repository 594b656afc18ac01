"""OpenAI's Responses API: as clients speak it to us, and as some upstreams speak it.

Most hosts speak OpenAI's chat API only, some this one only: then a request is translated (ADR 43).
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.providers.openai_responses.compacting import (
    pass_compact_request,
    read_compact_request,
    write_compaction,
)
from helmdash.providers.openai_responses.counting import ResponsesCounting
from helmdash.providers.openai_responses.errors import read_error, write_error
from helmdash.providers.openai_responses.listing import write_model, write_models
from helmdash.providers.openai_responses.pass_request import pass_request
from helmdash.providers.openai_responses.passing import ResponsesPassThrough
from helmdash.providers.openai_responses.read_request import read_request
from helmdash.providers.openai_responses.reply import read_reply, write_reply
from helmdash.providers.openai_responses.stream_reader import ResponsesStreamReader
from helmdash.providers.openai_responses.stream_writer import ResponsesStreamWriter
from helmdash.providers.openai_responses.write_request import write_request
from helmdash.providers.protocols import (
    ClientFormat,
    PassThrough,
    ReplyContext,
    SpokenFormat,
    StreamReader,
    StreamWriter,
    TokenCounting,
)
from helmdash.providers.wire import ChatRequest, Reply

__all__ = ["CLIENT", "COMPACT_CLIENT", "SPOKEN"]


class ResponsesClientFormat:
    """See protocols.ClientFormat."""

    name = "openai_responses"
    kind = ProviderKind.OPENAI
    wire = WireFormat.RESPONSES
    stream_type = "text/event-stream"
    too_long_words = (
        "Your input exceeds the context window of this model. This model's maximum context length "
        "is {limit} tokens. However, your input is about {estimate} tokens."
    )
    counting: TokenCounting | None = ResponsesCounting()

    read_request = staticmethod(read_request)
    pass_request = staticmethod(pass_request)
    write_reply = staticmethod(write_reply)
    write_error = staticmethod(write_error)
    write_models = staticmethod(write_models)
    write_model = staticmethod(write_model)

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """Nothing is hidden from the client."""
        return ResponsesPassThrough()

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """Numbered events, one item after the other."""
        return ResponsesStreamWriter(answer=answer)


class CompactClientFormat(ResponsesClientFormat):
    """The same at the address that compacts a history, with a request and a reply of its own."""

    name = "openai_compact"
    counting = None

    read_request = staticmethod(read_compact_request)
    pass_request = staticmethod(pass_compact_request)
    write_reply = staticmethod(write_compaction)


class ResponsesSpokenFormat:
    """See protocols.SpokenFormat."""

    wire = WireFormat.RESPONSES

    write_request = staticmethod(write_request)
    read_error = staticmethod(read_error)

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """Never raises. The format has one form of reply, whatever the request was."""
        return read_reply(body)

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """A new reader for each stream. The format has one form of stream, whatever the request
        was."""
        return ResponsesStreamReader()


CLIENT: ClientFormat = ResponsesClientFormat()
COMPACT_CLIENT: ClientFormat = CompactClientFormat()
SPOKEN: SpokenFormat = ResponsesSpokenFormat()
