"""Conversations: how they are looked for, and what an erasure of one took away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.answers import INLINE, answer
from helmdash.api.fields import QUERY, Cursor, Limit, ListText, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.core.budgets.levels import Level
from helmdash.doors.bodies.fields import SmallPositive
from helmdash.operations.retention.erasing import Erased


class ListQuery(TypedDict, total=False):
    """Filters of conversations, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    level: Level
    model: Annotated[QueryText, Field(description="Of the newest call, in any spelling.")]
    client: Annotated[
        QueryText, Field(description="Name of the program that made the newest call.")
    ]
    min_calls: Annotated[
        SmallPositive,
        Field(
            description="At least so many calls: 2 leaves single questions out. More are looked "
            "for among 20,000 conversations for each page."
        ),
    ]
    q: Annotated[
        ListText,
        Field(
            description="A query, as above the list of conversations: `level:critical calls:>20`. "
            "Words without a field are a part of the conversation's id, looked for among 20,000 "
            "conversations for each page; where there are more, what ids begin with comes first: "
            "if any begins so, only those are found."
        ),
    ]
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


@answer("Erased")
@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedConversation:
    """What an erasure took away, in rows; zeros where nothing was stored of the conversation."""

    conversation: str
    erased: Annotated[Erased, INLINE]
