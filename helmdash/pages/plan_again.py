"""What is known of a plan's question, to ask it again."""

from __future__ import annotations

from helmdash.queries.plans import PlanView

# What stands in a snippet for an intent that is not kept.
_NO_INTENT = "INTENT"


def asked_variant(detail: PlanView) -> str | None:
    """The prompt variant that a plan began with; None for a route, whose prompt has none.

    A later try may have had another one, which was chosen for what had gone wrong.
    """
    if detail.item.kind != "plan":
        return None
    begun = (each.variant for each in detail.attempts if each.purpose == "plan")
    return next(begun, None) or detail.item.prompt_variant


def asked_again(detail: PlanView) -> dict[str, object]:
    """The body that asks the same; context, limits and an inline catalog are not kept."""
    plan = detail.item
    body = {
        "user_intent": plan.intent or _NO_INTENT,
        "model": plan.model,
        "prompt_variant": asked_variant(detail),
        "catalog_name": detail.catalog_name,
        "continues": detail.continues,
    }
    return {name: value for name, value in body.items() if value}
