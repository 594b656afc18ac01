"""What a catalog is fitted to, and what it is ranked by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Required

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.core.ranking import ranking
from helmdash.doors.bodies.catalogs import OptionalCatalog
from helmdash.doors.bodies.fields import (
    STRICT,
    CatalogName,
    FreeObject,
    Intent,
    ModelId,
    TriedConversation,
)


class PastPlan(TypedDict):
    """An earlier intent and the entries that served it, newest last."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    intent: str
    tools: Annotated[list[str], Field(max_length=1000)]


History = Annotated[list[PastPlan], Field(max_length=1000)]


class FitIn(TypedDict, total=False):
    """A catalog to fit to a model's budget for an intent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    model: Required[ModelId]
    intent: Required[Intent]
    catalog: Annotated[
        OptionalCatalog, Field(description="Left out: `catalog_name`, or the current catalog.")
    ]
    catalog_name: CatalogName | None
    context: Annotated[FreeObject | None, Field(description="Counted, since it is sent, too.")]
    defaults: Annotated[FreeObject | None, Field(description="Counted, since it is sent, too.")]
    history: History | None
    conversation: TriedConversation


class FitArguments(TypedDict):
    """The part of the arguments of `operations.fitting.fits.fit_catalog` that a body has."""

    model: str
    intent: str
    catalog: object | None
    catalog_name: str | None
    context: dict[str, Any] | None
    defaults: dict[str, Any] | None
    history: Sequence[ranking.PastPlan]
    conversation: str | None


def fit_arguments(given: FitIn) -> FitArguments:
    """The body as `fit_catalog` takes it."""
    return {
        "model": given["model"],
        "intent": given["intent"],
        "catalog": given.get("catalog"),
        "catalog_name": given.get("catalog_name"),
        "context": given.get("context"),
        "defaults": given.get("defaults"),
        "history": past_plans(given.get("history")),
        "conversation": given.get("conversation"),
    }


def past_plans(given: Sequence[PastPlan] | None) -> tuple[ranking.PastPlan, ...]:
    """The history as the ranking takes it; None, not given: none."""
    return tuple(
        ranking.PastPlan(intent=plan["intent"], tools=tuple(plan["tools"])) for plan in given or ()
    )


def catalog_member(name: str | None) -> str:
    """The member to blame when there is no catalog: `catalog_name` if one was named."""
    return "catalog_name" if name else "catalog"
