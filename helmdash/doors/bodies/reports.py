"""A call as its client reports it."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from helmdash.core.calls.composition import MOST_RESULT_TOOLS
from helmdash.core.calls.lanes import SIDE_PURPOSES
from helmdash.doors.bodies.fields import (
    OPEN,
    STRICT,
    ClientId,
    ConversationId,
    Count,
    FreeObject,
    HttpStatus,
    Milliseconds,
    ModelId,
    SmallPositive,
    StartedAt,
    Word32,
    Word64,
    Word128,
    Word255,
)

_LABELS = Annotated[list[Word255], Field(max_length=1000)]


class TrimIn(TypedDict, total=False):
    """What was cut before sending. The `compaction` object of POST /fit may be sent as it is."""

    __pydantic_config__ = OPEN  # type: ignore[misc]

    before_bytes: Required[Count]
    after_bytes: Required[Count]
    dropped: _LABELS | None


class SentIn(TypedDict, total=False):
    """The size of what was sent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    bytes: Count | None
    messages: Count | None
    tools_bytes: Count | None
    images: Count | None


class CompositionIn(TypedDict, total=False):
    """What fills the prompt: bytes by kind. Null and left out: not known."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    system: Count | None
    tools: Annotated[Count | None, Field(description="Schemas of tools, as JSON.")]
    user: Count | None
    assistant: Annotated[Count | None, Field(description="Texts, reasoning and calls of tools.")]
    tool_results: Count | None
    images: Count | None
    other: Count | None
    results_by_tool: Annotated[
        dict[Word128, Count] | None,
        Field(
            max_length=1000,
            description="Of `tool_results`, by the name of the tool. "
            f"The largest {MOST_RESULT_TOOLS} are kept.",
        ),
    ]


class ClientIn(TypedDict, total=False):
    """The program that made the call."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    name: Required[Annotated[Word64, Field(description="Such as claude-code or openai-python.")]]
    version: Word32 | None


def _named_parent(parent: str | None, info: ValidationInfo) -> str | None:
    conversation = info.data.get("conversation")
    if parent is None or (conversation is not None and conversation != parent):
        return parent
    sentence = "goes with a conversation, and names another one"
    raise PydanticCustomError("parent", sentence)


class CallIn(TypedDict, total=False):
    """One call as its client reports it. Null and left out mean the same: not known."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    id: Annotated[
        ClientId | None,
        Field(description="The client's own id. A repeat gets the first response."),
    ]
    conversation: Annotated[
        ConversationId | None, Field(description="The dialogue the call belongs to.")
    ]
    parent: Annotated[
        ConversationId | None,
        Field(
            description="The conversation that this one is a part of, as a sub-agent's is. The "
            "first that is told stays. Needs `conversation`."
        ),
        AfterValidator(_named_parent),
    ]
    lane: Annotated[
        Literal["main", "side"] | None,
        Field(
            description="side: made beside the conversation, such as a title. It has no generation "
            "and never measures how full the conversation is. Default: side for the purposes "
            f"{', '.join(sorted(SIDE_PURPOSES))}, else main."
        ),
    ]
    context: Annotated[
        Word64 | None,
        Field(
            description="How the program that made the call names the context it was made in: a "
            "number that rises, or any word that changes, whenever the program compacts its "
            "history by itself. Another one opens a round. Counts beside `conversation` only."
        ),
    ]
    round: Annotated[
        SmallPositive | None,
        Field(
            description="The round it was begun in. Tells a call that was under way when its "
            "conversation was cleared from the first of the new round."
        ),
    ]
    model: Required[Annotated[ModelId, Field(description="The model as it was asked for.")]]
    provider: Word64 | None
    pack: Word128 | None
    purpose: Annotated[
        Word32 | None, Field(description="chat (default), plan, route, filter, verify …")
    ]
    correlation_id: Annotated[Word128 | None, Field(description="Ties related calls together.")]
    attempt: SmallPositive | None
    attempts: Annotated[
        list[FreeObject] | None,
        Field(
            max_length=100,
            description="Every attempt at this call, also the last one, as objects of your own.",
        ),
    ]
    client: Annotated[
        ClientIn | None,
        Field(description="The program that made the call, not the one that reports it."),
    ]
    client_window: Annotated[
        Count | None,
        Field(
            description="Tokens of context that the client counts on. It only suggests: what an "
            "operator, the provider or its server says comes first."
        ),
    ]
    route: Annotated[
        Literal["api", "transcript"] | None,
        Field(
            description="How the call became known: reported by the program that made it (api, the "
            "default), or read from what its agent wrote on the user's machine (transcript)."
        ),
    ]
    caller: Annotated[Word128 | None, Field(description="Default: the name of the API key.")]
    upstream_model: Word255 | None
    prompt_variant: Word32 | None
    response_format: Word32 | None
    usage: Annotated[
        FreeObject | None,
        Field(
            description="As the provider reports it; OpenAI, Anthropic, Gemini and Ollama shapes "
            "are told apart by their own field names. `prompt_tokens` is the total, cached tokens "
            "included. Null, left out or without usable numbers: unavailable."
        ),
    ]
    finish_reason: Annotated[Word64 | None, Field(description="In the provider's own word.")]
    raw_content_len: Annotated[
        Count | None, Field(description="UTF-8 bytes of the reply before anything was stripped.")
    ]
    latency_ms: Milliseconds | None
    ttft_ms: Annotated[Milliseconds | None, Field(description="Time to the first token.")]
    overhead_ms: Milliseconds | None
    status: Literal["success", "error", "cancelled"] | None
    http_status: HttpStatus | None
    error_code: Word128 | None
    error_message: Annotated[str | None, Field(description="Kept up to 2,000 characters.")]
    trim: TrimIn | None
    sent: SentIn | None
    composition: CompositionIn | None
    messages: Annotated[
        list[FreeObject] | None,
        Field(max_length=10_000, description="Stored only if the project keeps payloads."),
    ]
    content: Annotated[
        str | None, Field(description="The reply. Stored only if the project keeps payloads.")
    ]
    decoded: Annotated[
        bool | None, Field(description="False: the JSON that was due could not be read.")
    ]
    started_at: Annotated[
        StartedAt | None, Field(description="Default: when the call was recorded.")
    ]
    metadata: FreeObject | None
    fit_id: Annotated[Word64 | None, Field(description="The fit the prompt came from.")]
