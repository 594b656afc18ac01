"""Recorded fits: how they are looked for, and a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.answers import answer
from helmdash.api.fields import QUERY, Cursor, Limit, ListText, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.queries.fitting.fitting import FitView
from helmdash.queries.fitting.trim_filters import TrimOutcome
from helmdash.queries.lists.paging import Page


class ListQuery(TypedDict, total=False):
    """Filters of fits, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: Annotated[QueryText, Field(description="In any spelling.")]
    client: Annotated[QueryText, Field(description="Name of the key that asked.")]
    catalog: Annotated[QueryText, Field(description="Name of the catalog.")]
    cut: Annotated[QueryText, Field(description="Label of a step that cut something.")]
    outcome: Annotated[TrimOutcome, Field(description="cut, whole, or over: too large even so.")]
    q: Annotated[
        ListText,
        Field(
            description="A query, as above the list of fits: `outcome:over saved:>10k`. Words "
            "without a field are a part of the intent, where it is kept, or the beginning of an "
            "id."
        ),
    ]
    since: Annotated[TimeBound, Field(description="Made at this time or later.")]
    until: Annotated[TimeBound, Field(description="Made before this time.")]
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


LIST_QUERY = Shape(ListQuery)


@answer("TrimList")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrimList(Page[FitView]):
    """A page of fits, newest first. `next` may follow a page that is not full."""

    items: tuple[FitView, ...]
