"""A chat request to an upstream, and what becomes of its reply."""

from __future__ import annotations

from dataclasses import replace

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.core.values import quick_value
from helmdash.gateway.forwarding.context_array import is_dropped
from helmdash.gateway.forwarding.streams.pipes import (
    Pipe,
    dropping_pipe,
    native_pipe,
    translating_pipe,
)
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import JSON, Header
from helmdash.providers import gemini, openai_responses
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.ollama.context_array import without_context
from helmdash.providers.ollama.shown import with_num_ctx
from helmdash.providers.openai_responses.compacting import check_summary
from helmdash.providers.protocols import ClientFormat, HttpRequest, ReplyContext, ReplyFormat
from helmdash.providers.registry import SPOKEN
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.wire import ChatRequest, Message, Object, Other, Part, Reply, WireError

_STREAM_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl")


@quick_value(frozen=True, slots=True, kw_only=True)
class ChatTranslator:
    """A reply to a chat request.

    `is_array`: the client takes a stream as one JSON array. `drops_context`: it did not ask for
    Ollama's array of token ids.
    """

    client: ClientFormat
    upstream: ReplyFormat
    request: ChatRequest
    answer: ReplyContext
    is_native: bool
    is_array: bool
    drops_context: bool

    def is_streamed(self, content_type: str) -> bool:
        """As was asked; but an error in a 200 may come whole where a stream was due."""
        if not self.request.stream:
            return False
        return content_type.startswith(_STREAM_TYPES) or (self.is_native and self.is_array)

    def read_error(self, status: int, data: bytes) -> WireError:
        return self.upstream.read_error(status, data)

    def read_whole(self, data: bytes) -> Reply:
        """A 200 with nothing in it is no error, but has a cause of its own."""
        if not data.strip():
            return Reply()
        reply = self.upstream.read_reply(data, request=self.request)
        is_compaction = self.client is openai_responses.COMPACT_CLIENT and not self.is_native
        return check_summary(reply) if is_compaction else reply

    def pass_whole(self, data: bytes) -> bytes:
        """The same bytes, but for an array that nobody asked for."""
        return without_context(data) if self.drops_context else data

    def write_whole(self, reply: Reply) -> tuple[bytes, Header]:
        """Write the reply; as a stream, if that was asked for and the upstream did not do it."""
        if not self.request.stream:
            return self.client.write_reply(reply, answer=self.answer), JSON
        writer = self.client.stream_writer(answer=self.answer, request=self.request)
        parts = [writer.write(event) for event in events_of(reply)]
        kind = (b"content-type", self.client.stream_type.encode("latin-1"))
        return b"".join(parts) + writer.close(), kind

    def stream_type(self, content_type: str) -> str:
        return content_type if self.is_native and content_type else self.client.stream_type

    def pipe(self) -> Pipe:
        """The upstream's own bytes where it speaks the client's format, else a translation."""
        writer = self.client.stream_writer(answer=self.answer, request=self.request)
        if self.drops_context:
            return dropping_pipe(self.upstream.stream_reader(request=self.request), writer)
        if self.is_native:
            return native_pipe(self.client, self.request, writer)
        return translating_pipe(self.upstream.stream_reader(request=self.request), writer)


def chat_request(
    exchange: Exchange,
    endpoint: Endpoint,
    outgoing: OutgoingRequest,
    chat: ChatRequest,
    client: ClientFormat,
) -> tuple[HttpRequest, ChatTranslator]:
    """The request, and what becomes of its reply. Raises CannotTranslate."""
    is_native = exchange.is_native
    upstream: ReplyFormat
    if is_native:
        upstream = SPOKEN[client.wire]
        body: bytes = outgoing.body
        parsed: Object = outgoing.parsed
        if exchange.window is not None:
            body, parsed = with_num_ctx(body, parsed, exchange.window)
        request = client.pass_request(
            body, parsed, endpoint=endpoint, model=exchange.served_model, stream=chat.stream
        )
    else:
        _check_translatable(chat)
        told = replace(chat, num_ctx=exchange.window, messages=_spoken(chat))
        upstream = own = SPOKEN[endpoint.own_format]
        request = own.write_request(told, endpoint=endpoint, model=exchange.served_model)
        if left_out := [*chat.left_out, *request.left_out]:
            exchange.notes["notes"] = left_out
    translator = ChatTranslator(
        client=client,
        upstream=upstream,
        request=chat,
        answer=ReplyContext(
            call_id=exchange.call_id,
            model=exchange.model,
            created=int(exchange.started_at.timestamp()),
            request=chat,
        ),
        is_native=is_native,
        is_array=client is gemini.ARRAY_CLIENT,
        drops_context=is_dropped(client, endpoint.kind, chat, exchange.headers),
    )
    return request, translator


def _spoken(chat: ChatRequest) -> tuple[Message, ...]:
    """The messages without what the upstream can do without, of which `left_out` tells, and with
    what the client says by its address."""
    closing = () if chat.closing is None else (chat.closing,)
    if not chat.left_out:
        return (*chat.messages, *closing)
    kept = [
        replace(message, parts=tuple(part for part in message.parts if not _is_omissible(part)))
        for message in chat.messages
    ]
    return (*(message for message in kept if message.parts), *closing)


def _is_omissible(part: Part) -> bool:
    return isinstance(part, Other) and bool(part.is_omissible)


def _check_translatable(chat: ChatRequest) -> None:
    """Raises CannotTranslate for what would silently be answered otherwise than asked."""
    if chat.untranslatable is not None:
        raise CannotTranslate(chat.untranslatable)
    several = chat.extra.get("n")
    if isinstance(several, int) and several > 1:
        raise CannotTranslate("n: only one choice can be had of this model.")
    if chat.extra.get("logprobs") is True:
        raise CannotTranslate("logprobs: this model's API does not give them.")
