"""Plain values between the wire formats: a request, a reply, and the events of a stream.

An OpenAI-shaped request may be served by any provider, and so may the other shapes. Each format is
read into these values and written from them; none knows another. What a client does not say is
None, and stays unsaid on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeAlias

from helmdash.core.values import quick_value

Json: TypeAlias = Any  # whatever a JSON reader gives
Object: TypeAlias = Mapping[str, Any]


class Role(StrEnum):
    """Who a message is from. `developer` messages of OpenAI are system messages."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


# --- the parts of a message


@quick_value(frozen=True, slots=True, kw_only=True)
class Text:
    """Visible text. `cache`: a prefix ends here that will come again and is worth keeping."""

    text: str
    cache: bool | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: base64 `data` of a `media_type`, or a `url` (exactly one of data and url)."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    detail: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """What the model thought, where the provider shows it. `signature` is the vendor's seal."""

    text: str
    signature: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model asks for a tool. `arguments` is JSON text as the model wrote it, "" for none."""

    id: str
    name: str
    arguments: str


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered. `name` is known where the format says it (Gemini needs it)."""

    call_id: str
    parts: tuple[Text | Image, ...]
    name: str | None = None
    is_error: bool = False


# Longer than the name of any kind that a vendor has.
_SHOWN_CHARS = 64


@quick_value(frozen=True, slots=True, kw_only=True)
class Other:
    """A part that only its own format knows (audio, files …): cannot go to another provider.

    `is_omissible`: another provider can do without it, and the request's `left_out` says so; None:
    it cannot.
    """

    kind: str
    raw: Object
    is_omissible: bool | None = None

    @property
    def shown_kind(self) -> str:
        """The kind as a refusal quotes it: a client may send one of megabytes."""
        return self.kind[:_SHOWN_CHARS]


Part: TypeAlias = Text | Image | Reasoning | ToolCall | ToolResult | Other


@quick_value(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. Tool results stand in messages of the role TOOL, one or more in each."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None

    @property
    def text(self) -> str:
        """The visible text, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


# --- the request


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolOrigin:
    """What a tool is in its client's own format, where that has more kinds than functions.

    `item`: the type of the item that calls it. `namespace` None: it stands in none.
    """

    item: str
    name: str
    namespace: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the model may call; `parameters` is its JSON Schema. `origin` None: its client
    knows it as this very function."""

    name: str
    description: str | None = None
    parameters: Object | None = None
    strict: bool | None = None
    origin: ToolOrigin | None = None


class Choice(StrEnum):
    """Whether the model may, must or must not call a tool."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    ONE = "one"  # the one that is named


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """`name` goes with Choice.ONE only."""

    mode: Choice
    name: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class JsonMode:
    """The reply has to be JSON; of a `schema`, when there is one."""

    schema: Object | None = None
    name: str | None = None
    strict: bool | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request for a reply, system messages among the messages, in order.

    `model` is what the client wrote. `wants_usage`: the client asked for usage in its stream
    (formats that always carry it: True). `reasoning_effort` none | minimal | low | medium | high;
    `reasoning_tokens` a limit for it. `num_ctx`: tokens of context that the server is to make room
    for, which only Ollama can be told. `extra` holds the top-level members no field here covers:
    they stay in their own format and are lost on the way to another.

    For a format in which a request need not hold its whole prompt: `is_fragment` where it goes on
    from what the server keeps; `conversation` is the id of the one it goes on with, `continues`
    that of the reply, and `keeps_reply` where the server is to keep this one. `may_truncate`: the
    server is told to leave out of the prompt what does not fit.
    `closing` says at the end in another format what its client says by the address it asks.
    `left_out` has a sentence for each thing that another format has no word for and can do
    without, `untranslatable` one for the first that it cannot. `repeated` are the members that a
    reply repeats.
    """

    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    wants_usage: bool = True
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    json_mode: JsonMode | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning_effort: str | None = None
    reasoning_tokens: int | None = None
    num_ctx: int | None = None
    metadata: Object | None = None
    extra: Object = field(default_factory=dict)
    is_fragment: bool | None = None
    conversation: str | None = None
    continues: str | None = None
    keeps_reply: bool | None = None
    closing: Message | None = None
    may_truncate: bool | None = None
    left_out: tuple[str, ...] = ()
    untranslatable: str | None = None
    repeated: Object = field(default_factory=dict)


@quick_value(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts to embed. `encoding` is "float" or "base64" (little-endian 32-bit floats)."""

    model: str
    inputs: tuple[str, ...]
    dimensions: int | None = None
    encoding: str = "float"


# --- the reply


# The codes of our own for a body of a 200, and for bytes of a stream, that cannot be read.
UNDECODABLE_REPLY = "undecodable_reply"
UNDECODABLE_STREAM = "undecodable_stream"


@quick_value(frozen=True, slots=True, kw_only=True)
class WireError:
    """An error in a vendor's words. `status` is its HTTP status, where there is one; `param` the
    member of the request that it is about, where OpenAI's errors name one."""

    message: str
    code: str | None = None
    type: str | None = None
    status: int | None = None
    retry_after_s: float | None = None
    param: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back. `finish_reason` and `usage` are the vendor's own, untouched.

    `error` is an error inside a 200. `refusal` is a refusal told apart from the content. A reply
    that was blocked for its prompt has no parts and the block reason as its finish reason.
    `context_edits`: what the provider left out of the prompt by itself, as it says so. `has_media`:
    pictures or speech came as well, in parts or beside them; None: none did.
    """

    id: str | None = None
    model: str | None = None
    parts: tuple[Part, ...] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    usage: Object | None = None
    error: WireError | None = None
    context_edits: tuple[Object, ...] = ()
    has_media: bool | None = None

    @property
    def text(self) -> str:
        """The visible text, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def reasoning(self) -> str:
        """The reasoning that came beside the text, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, Reasoning)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls among its parts, in order, without texts and reasoning."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])


@quick_value(frozen=True, slots=True, kw_only=True)
class EmbeddingReply:
    """Vectors in the order of the inputs."""

    model: str | None
    vectors: tuple[tuple[float, ...], ...]
    usage: Object | None = None
    error: WireError | None = None


# --- the events of a stream


@quick_value(frozen=True, slots=True, kw_only=True)
class Started:
    """The reply has begun; sent at most once, as soon as its id or model is known."""

    id: str | None = None
    model: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@quick_value(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str
    signature: str | None = None


@quick_value(frozen=True, slots=True, kw_only=True)
class RefusalDelta:
    text: str


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolCallStarted:
    """`index` numbers the tool calls of the reply from 0, in the order they started."""

    index: int
    id: str
    name: str


@quick_value(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    index: int
    arguments: str


@quick_value(frozen=True, slots=True, kw_only=True)
class Finished:
    """The vendor's finish reason; usage may still follow."""

    reason: str


@quick_value(frozen=True, slots=True, kw_only=True)
class UsageSeen:
    """All usage reported so far, as one vendor-shaped object; a later one replaces it."""

    usage: Object


@quick_value(frozen=True, slots=True, kw_only=True)
class MediaSeen:
    """A picture or speech has come, or a piece of it: no other format is told of it."""


@quick_value(frozen=True, slots=True, kw_only=True)
class ContextEdited:
    """The provider left something out of the prompt by itself: an entry for each edit."""

    edits: tuple[Object, ...]


@quick_value(frozen=True, slots=True, kw_only=True)
class Failed:
    """An error inside the stream, or bytes that cannot be read (code "undecodable_stream")."""

    error: WireError


@quick_value(frozen=True, slots=True, kw_only=True)
class Ended:
    """The vendor's own end mark ([DONE], message_stop, done: true); nothing of use follows."""


Event: TypeAlias = (
    Started
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallStarted
    | ToolCallDelta
    | Finished
    | UsageSeen
    | MediaSeen
    | ContextEdited
    | Failed
    | Ended
)
