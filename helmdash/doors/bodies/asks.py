"""What is asked for: a plan or a route.

Source: the inputs that clients of helmdeck ADR 050 and 053 send already.
"""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.doors.bodies.catalogs import OptionalCatalog
from helmdash.doors.bodies.fields import (
    STRICT,
    CatalogName,
    FreeObject,
    Intent,
    SmallPositive,
    TriedConversation,
    Word64,
    Word255,
)
from helmdash.operations.planning import Ask

# Far beyond what any model writes at once; a larger number is a slip of the keyboard.
MOST_OUTPUT_TOKENS = 1_000_000


class AskIn(TypedDict, total=False):
    """What is to be planned or routed, and by which model."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    user_intent: Required[Annotated[Intent, Field(description="What the user wants, as said.")]]
    model: Annotated[
        Word255 | None,
        Field(description="As `provider/model`. Left out: HELMDASH_DEFAULT_MODEL."),
    ]
    context: Annotated[
        FreeObject | None,
        Field(
            description="What the model should know besides. `steps_taken` lists steps that are "
            "done, each with its `tool` and `args`: they are not planned again."
        ),
    ]
    max_tokens: Annotated[
        Annotated[SmallPositive, Field(le=MOST_OUTPUT_TOKENS)] | None,
        Field(description="Output, reasoning included. Default: that of the model's budget."),
    ]
    catalog: Annotated[
        OptionalCatalog, Field(description="Left out: `catalog_name`, or the current catalog.")
    ]
    catalog_name: CatalogName | None
    prompt_variant: Annotated[
        Literal["full_steps", "single_pick"] | None,
        Field(description="Default: that of the model's budget."),
    ]
    continues: Annotated[
        Word64 | None, Field(description="`plan_id` of the plan whose work this one goes on with.")
    ]
    conversation: TriedConversation


def to_ask(kind: Literal["plan", "route"], given: AskIn) -> Ask:
    """The body as the planner takes it."""
    return Ask(
        kind=kind,
        user_intent=given["user_intent"],
        model=given.get("model"),
        context=given.get("context"),
        max_tokens=given.get("max_tokens"),
        catalog=given.get("catalog"),
        catalog_name=given.get("catalog_name"),
        prompt_variant=given.get("prompt_variant"),
        continues=given.get("continues") or None,
        conversation=given.get("conversation"),
    )
