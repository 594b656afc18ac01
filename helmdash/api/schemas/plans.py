"""Plan history: how plans are looked for, and what is told of one later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, ListText, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.doors.bodies.fields import STRICT


class ListQuery(TypedDict, total=False):
    """Filters of plans, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: QueryText
    variant: Literal["full_steps", "single_pick"]
    outcome: Literal["running", "ok", "gap", "partial", "failed"]
    kind: Literal["plan", "route"]
    tool: Annotated[QueryText, Field(description="A pack or pipeline that some step uses.")]
    caller: QueryText
    q: Annotated[
        ListText,
        Field(
            description="A query, as above the list of plans: `outcome:gap latency:>5s`. Words "
            "without a field are a part of the intent, where it is kept, or the beginning of an "
            "id."
        ),
    ]
    since: Annotated[TimeBound, Field(description="Asked for at this time or later.")]
    until: Annotated[TimeBound, Field(description="Asked for before this time.")]
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


LIST_QUERY = Shape(ListQuery)


class FeedbackIn(TypedDict):
    """Whether the steps of a plan were carried out."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    followed: Annotated[bool, Field(description="Later plans learn from those that were.")]


FEEDBACK = Shape(FeedbackIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What is known about a plan from now on."""

    id: str
    followed: bool
