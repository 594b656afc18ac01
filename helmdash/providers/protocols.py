"""What a wire format can do: as a client speaks it to us, and as we speak it to an upstream.

Two protocols, since they are two things: a client's format may have no upstream of its own, and an
upstream's no clients. A vendor's folder offers `CLIENT` and `UPSTREAM`, which are nothing but the
functions of its modules, gathered; `registry` knows them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind, WireFormat
from helmdash.core.values import quick_value
from helmdash.providers.wire import (
    ChatRequest,
    EmbeddingReply,
    EmbeddingRequest,
    Event,
    Object,
    Reply,
    WireError,
)


@quick_value(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request to an upstream. `path` follows the endpoint's base URL; `body` None is a GET,
    unless `method` says otherwise. `left_out` has a sentence for each thing that was asked for and
    that the upstream's format has no word for.

    `headers` hold the credentials: never log them.
    """

    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    method: str | None = None
    left_out: tuple[str, ...] = ()


@quick_value(frozen=True, slots=True, kw_only=True)
class ReplyContext:
    """What a format says of a reply besides what is in it.

    `model` is what the client asked for; `created` is in seconds since the epoch. `request` is what
    it answers; None: nobody needs to know.
    """

    call_id: str
    model: str
    created: int
    request: ChatRequest | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model as a list tells of it: by which name a client asks for it, and who serves it.

    `window` (tokens of context), `output_tokens` (of one reply) and `compacts_at` (tokens of a
    prompt above which its conversation is critical) as its budget has them; None: not known.
    """

    name: str
    owner: str
    window: int | None = None
    output_tokens: int | None = None
    compacts_at: int | None = None


class StreamReader(Protocol):
    """Bytes of an upstream's stream to events. Never raises: what is unreadable is `Failed`."""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; the same however the bytes are split."""

    def flush(self) -> list[Event]:
        """The events of what is left when the upstream has closed."""


class PassThrough(Protocol):
    """An upstream's stream on its way to a client of the same format: read, and handed on.

    Never raises. The events, and the bytes joined, are the same however the bytes are split.
    """

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The bytes to hand on now (often these very ones), and the events they complete."""

    def flush(self) -> tuple[bytes, list[Event]]:
        """What is left of both when the upstream has closed."""

    def fail(self, error: WireError) -> bytes | None:
        """The bytes that end a stream which has broken off, where they depend on what passed;
        None: they do not, and the format's writer has them."""


class Mirror:
    """The PassThrough of a format in which nothing is hidden from the client."""

    __slots__ = ("_reader",)

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The same bytes, and their events."""
        return data, self._reader.feed(data)

    def flush(self) -> tuple[bytes, list[Event]]:
        """No bytes: all were handed on as they came."""
        return b"", self._reader.flush()

    def fail(self, error: WireError) -> bytes | None:
        """None: an error is worded alike wherever it comes."""
        return None


class StreamWriter(Protocol):
    """Events to the bytes of a client's stream."""

    def write(self, event: Event) -> bytes:
        """The bytes for one event; often none."""

    def close(self) -> bytes:
        """What a client needs to see a sound end, if `write` has not said it yet."""


class TokenCounting(Protocol):
    """A vendor's endpoint that counts the tokens of a request without a reply."""

    def count_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Ask an upstream of the same format with a client's own bytes; `model` is its own id."""

    def write_count(self, tokens: int) -> bytes:
        """A count as this vendor would answer it."""


class ClientFormat(Protocol):
    """What a client speaks: we are that vendor."""

    @property
    def name(self) -> str:
        """One word for records; unlike `kind`, no two formats share it."""

    @property
    def kind(self) -> ProviderKind | None:
        """The upstreams that may take this format's requests as they are; None: none does, so that
        every request is translated."""

    @property
    def wire(self) -> WireFormat:
        """What an upstream has to speak to take them so."""

    @property
    def stream_type(self) -> str:
        """The `content-type` that a stream is answered with."""

    @property
    def too_long_words(self) -> str:
        """How this vendor says that a prompt is too long, for agents that know its words.

        A template: `{estimate}`, `{limit}` and `{over}` are tokens.
        """

    @property
    def counting(self) -> TokenCounting | None:
        """None where the vendor counts no tokens for its clients."""

    def read_request(self, body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
        """Read a client's request. `model` and `stream` as the URL says them; None: it does not.

        Raises BadRequest naming the member. Unknown members are kept in `extra`.
        """

    def pass_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
    ) -> HttpRequest:
        """A client's own bytes for an upstream of `kind`; `parsed` is what they say.

        Byte for byte, except where something has to change: the model's id, and that a stream
        must report usage. Raises CannotTranslate for what would have to be written anew and
        cannot be.
        """

    def pass_stream(self, *, request: ChatRequest) -> PassThrough:
        """A stream of such an upstream on its way to the client."""

    def write_reply(self, reply: Reply, *, answer: ReplyContext) -> bytes:
        """A whole reply as this vendor would send it."""

    def stream_writer(self, *, answer: ReplyContext, request: ChatRequest) -> StreamWriter:
        """Start a stream as this vendor would send it."""

    def write_error(self, error: WireError) -> bytes:
        """An error body as this vendor would send it; its status is `error.status`."""

    def write_models(self, models: Iterable[ListedModel], *, created: int) -> bytes:
        """A list of models; `created` in seconds since the epoch. What is not known of one is said
        as this vendor says it, or left out: a client takes 0 for a size."""

    def write_model(self, model: ListedModel, *, created: int) -> bytes:
        """The response to a client that asks for one model by its id; `created` is in Unix
        seconds."""


class ReplyFormat(Protocol):
    """What an upstream answers in: all that is needed where a client's own request is passed on."""

    @property
    def wire(self) -> WireFormat:
        """The format's name among those that an upstream speaks."""

    def read_reply(self, body: bytes, *, request: ChatRequest) -> Reply:
        """A whole reply of a 200. Never raises: what cannot be read is `reply.error` (code
        "undecodable_reply")."""

    def stream_reader(self, *, request: ChatRequest) -> StreamReader:
        """A new reader for one stream: it remembers what earlier bytes said."""

    def read_error(self, status: int, body: bytes) -> WireError:
        """The error of a status of 400 and more, whatever the body is. Never raises."""


class SpokenFormat(ReplyFormat, Protocol):
    """What an upstream may be spoken to in where a client's request has to be translated."""

    def write_request(self, request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
        """The request for an upstream; `model` is its own id. Raises CannotTranslate.

        A stream always asks for usage.
        """


class UpstreamFormat(SpokenFormat, Protocol):
    """What an upstream speaks: we call that vendor."""

    @property
    def kind(self) -> ProviderKind:
        """Upstreams of this kind are spoken to in this format."""

    def models_request(self, *, endpoint: Endpoint) -> HttpRequest:
        """Ask for the list of models."""

    def read_models(self, body: bytes) -> tuple[str, ...]:
        """The ids in that list, as `model` is written in a request. Raises ValueError."""

    def embeddings_request(
        self, request: EmbeddingRequest, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """Ask for embeddings. Raises CannotTranslate where the vendor has none."""

    def read_embeddings(self, body: bytes) -> EmbeddingReply:
        """The vectors, in the order of the inputs. Never raises: what cannot be read is
        `reply.error`."""
