"""Conversations: where each stands, and how it came there."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.api.schemas.care import ActionText, StrengthText
from helmdash.core.budgets.levels import Level
from helmdash.shapes.answers import Standing
from helmdash.shapes.care import RemediationState
from helmdash.shapes.fields import SmallPositive


class ListQuery(TypedDict, total=False):
    """Filters of conversations, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    level: Level
    model: Annotated[QueryText, Field(description="Of the newest call, in any spelling.")]
    client: Annotated[
        QueryText, Field(description="Name of the program that made the newest call.")
    ]
    min_calls: Annotated[
        SmallPositive, Field(description="At least so many calls: 2 leaves single questions out.")
    ]
    q: Annotated[QueryText, Field(description="A part of the conversation's id.")]
    since: Annotated[TimeBound, Field(description="Has calls at this time or later.")]
    until: Annotated[TimeBound, Field(description="Began before this time.")]
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


class PageQuery(TypedDict, total=False):
    """The place in a list without filters."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


LIST_QUERY = Shape(ListQuery)
PAGE_QUERY = Shape(PageQuery)


class Conversation(Standing):
    """One conversation as its newest call left it."""

    started_at: datetime
    latest_at: datetime


class Round(TypedDict):
    """The calls between two fresh starts of the context."""

    number: int
    first_generation: int
    latest_generation: int
    peak_prompt_tokens: int | None
    started_at: datetime
    ended_at: datetime | None
    opened_by: Annotated[str | None, Field(description="clear | compaction; null: the first.")]


class LevelChange(TypedDict):
    """The level became another one with this generation."""

    generation: int
    from_level: Level | None
    to_level: Level
    at: datetime


class GuidanceGiven(TypedDict):
    """What was done before one generation."""

    generation: int
    round: int
    action: ActionText
    strength: StrengthText | None
    remaining: int | None
    at: datetime
    followed_at: Annotated[
        datetime | None, Field(description="When a reminder was written after it.")
    ]


class Remediation(RemediationState):
    """What is being done about the level, and what was done (newest first, at most 50)."""

    guidance: list[GuidanceGiven]


class ConversationDetail(Conversation):
    """One conversation with its rounds and level changes (newest first, at most 50)."""

    rounds: list[Round]
    remediation: Remediation
    level_changes: list[LevelChange]


class ConversationList(TypedDict):
    """A page of conversations, newest first."""

    items: list[Conversation]
    next: str | None


_Event = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": ["call", "clear", "compaction", "model_change"]}),
]


class TimelineItem(TypedDict):
    """One event of a conversation. A clear belongs to no call: it says what it comes before."""

    generation: int
    round: int
    at: datetime
    event: _Event
    call_id: str | None
    model: str | None
    prompt_tokens: int | None
    level: Level | None


class Timeline(TypedDict):
    """Events, oldest first; `limit` counts generations."""

    items: list[TimelineItem]
    next: str | None


class Erased(TypedDict):
    """What an erasure took away, in rows; zeros where nothing was stored of the conversation."""

    conversation: str
    calls: int
    messages: int
    fits: int
    waiting_prompts: int
