"""Suggestions and learned limits: how they are looked for, and what is said to them."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.core.evidence.net_value import Shortening
from helmdash.core.evidence.suggested import SuggestionState
from helmdash.doors.bodies.fields import STRICT, SmallPositive


class ListQuery(TypedDict, total=False):
    """Filters of suggestions, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    state: SuggestionState
    model: QueryText
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


class LimitsQuery(TypedDict):
    """Which model."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: Annotated[QueryText, Field(description="In any spelling.", min_length=1)]


class NetValueQuery(TypedDict, total=False):
    """Which shortened prompts are added up, and how many of them are listed."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    since: Annotated[TimeBound, Field(description="Shortened at this time or later.")]
    until: Annotated[TimeBound, Field(description="Shortened before this time.")]
    model: Annotated[QueryText, Field(description="In any spelling.")]
    kind: Shortening
    limit: Annotated[Limit, Field(description="So many items, the newest. Default 50.")]


class DismissIn(TypedDict, total=False):
    """Why a suggestion is not followed."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    reason: Required[
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=500, strip_whitespace=True),
            Field(description="For who looks at it later."),
        ]
    ]


class TrialIn(TypedDict, total=False):
    """How a suggestion is tried. With neither end: 14 days."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    share: Annotated[
        float | None,
        Field(
            ge=0.01,
            le=0.9,
            description="Of the conversations, of one, that the suggested budget rules. "
            "Default 0.2.",
        ),
    ]
    conversations: Annotated[
        Annotated[SmallPositive, Field(ge=40, le=100_000)] | None,
        Field(description="Ends it: so many, of both arms together."),
    ]
    days: Annotated[
        Annotated[SmallPositive, Field(ge=1, le=90)] | None, Field(description="Ends it.")
    ]


LIST_QUERY = Shape(ListQuery)
LIMITS_QUERY = Shape(LimitsQuery)
NET_VALUE_QUERY = Shape(NetValueQuery)
DISMISS = Shape(DismissIn)
TRIAL = Shape(TrialIn)
