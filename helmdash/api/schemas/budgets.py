"""Budgets: how rows are edited and looked for."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText
from helmdash.api.parsing import Shape
from helmdash.doors.bodies.fields import (
    STRICT,
    Count,
    Positive,
    SmallPositive,
    UsdPerMillion,
    Word64,
    Word255,
)

# As JSON says them: in strict mode an enum would want its member.
TierName = Literal["A", "B", "C"]
VariantName = Literal["full_steps", "single_pick"]
_Bytes = Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False)]
_Factor = Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)]
_Evidence = Annotated[str, StringConstraints(max_length=20_000)]


class BudgetPatch(TypedDict, total=False):
    """The members of a budget to change. Null resets those that have a default."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    key: Annotated[Word255, Field(description="Exact model id or prefix. Empty: the fallback.")]
    input_tokens: Annotated[Positive, Field(description="Safe ceiling of a whole prompt.")]
    output_tokens: Positive
    max_catalog_bytes: Annotated[Count, Field(description="0: the catalog is never cut.")]
    tier: TierName
    allows_llm_filter: bool
    filter_model: Annotated[Word255, Field(description="Empty: the planning model itself.")]
    fallback_model: Annotated[
        Word255,
        Field(
            description="Makes the plan when this model times out or is unavailable. Empty: none."
        ),
    ]
    is_hybrid_reasoning: bool
    wants_strict_json: bool
    supports_prefix_cache: bool
    cached_input_cost_usd_per_mtok: UsdPerMillion
    input_cost_usd_per_mtok: UsdPerMillion | None
    output_cost_usd_per_mtok: UsdPerMillion | None
    prompt_variant: Annotated[VariantName | None, Field(description="Null: by tier.")]
    context_length: Annotated[Positive | None, Field(description="Advertised; null: unknown.")]
    input_length: Annotated[Positive | None, Field(description="Advertised; null: unknown.")]
    optimal_max_tokens: Annotated[
        Positive | None, Field(description="Null: 100,000; 70 % of a limit below 128,000.")
    ]
    critical_max_tokens: Annotated[Positive | None, Field(description="Null: 90 % of the limit.")]
    caution_cadence: Annotated[SmallPositive | None, Field(description="Null: 10.")]
    chars_per_token: Annotated[_Bytes, Field(description="UTF-8 bytes of one token.")]
    safety_multiplier: _Factor
    reserve_tokens: Count
    evidence: Annotated[_Evidence, Field(description="Why these numbers, and their source.")]
    enabled: bool


class BudgetIn(BudgetPatch, total=False):
    """A new budget."""

    key: Required[  # type: ignore[misc]
        Annotated[Word255, Field(description="Exact model id or prefix. Empty: the fallback.")]
    ]
    input_tokens: Required[  # type: ignore[misc]
        Annotated[Positive, Field(description="Safe ceiling of a whole prompt.")]
    ]
    output_tokens: Required[Positive]  # type: ignore[misc]
    tier: Required[TierName]  # type: ignore[misc]
    project: Annotated[
        Word64 | None,
        Field(
            description="The slug of the key's own project, also when left out. Null: for every "
            "project; takes an admin key of the default project."
        ),
    ]


PATCH = Shape(BudgetPatch)
CREATE = Shape(BudgetIn)


class ListQuery(TypedDict, total=False):
    """The place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


class ResolveQuery(TypedDict):
    """The model to look up."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: Annotated[QueryText, Field(description="A model id; empty gives the fallback.")]


LIST_QUERY = Shape(ListQuery)
RESOLVE_QUERY = Shape(ResolveQuery)
