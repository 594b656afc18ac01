"""What-ifs: how one is asked for, and how they are looked for."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.api.schemas.budgets import BudgetPatch
from helmdash.core.whatif.edits import MOST_EDITS
from helmdash.doors.bodies.fields import STRICT, Word255


class EditIn(TypedDict, total=False):
    """Other figures in one row, in the key's project alone."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    key: Required[
        Annotated[
            Word255,
            Field(
                description="Of a row, or of one that would be made. Empty: the fallback.",
            ),
        ]
    ]
    changes: Required[
        Annotated[
            BudgetPatch,
            Field(description="Members of a budget, but for key and evidence."),
        ]
    ]


class WhatIfIn(TypedDict, total=False):
    """Edits of budgets to try, and the calls and fits to try them on."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    edits: Required[Annotated[list[EditIn], Field(min_length=1, max_length=MOST_EDITS)]]
    title: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]
    since: Annotated[
        TimeBound | None,
        Field(description="Default: seven days before `until`. Null: from the first call."),
    ]
    until: Annotated[TimeBound, Field(description="Default, and at most: now.")]


class ListQuery(TypedDict, total=False):
    """The place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 20.")]


class ItemsQuery(TypedDict, total=False):
    """Which figure, and the place in its list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    figure: Required[
        Annotated[
            QueryText,
            Field(description="As the fields of a what-if name them, such as `level:other`."),
        ]
    ]
    model: Annotated[
        QueryText, Field(description="A `model_key` of `calls.models`: its calls alone.")
    ]
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


ASK = Shape(WhatIfIn)
LIST_QUERY = Shape(ListQuery)
ITEMS_QUERY = Shape(ItemsQuery)
