"""What all calls of a conversation took together: tokens, and what these cost today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Q, Sum

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.prices import cost_usd
from helmdash.records.conversation_names import named
from helmdash.records.querysets import calls_of

# They are added up one by one, some milliseconds for a thousand, each time that a call comes.
MOST_CALLS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens of all `calls`, side calls among them: None where no call reported any; `told` and
    `answered` calls did. cost_usd: of the models with a price, whose `priced` calls reported
    tokens; None where no model has one. Nothing is known of a conversation with more calls than
    MOST_CALLS (`is_known`)."""

    calls: int
    is_known: bool
    prompt_tokens: int | None = None
    told: int = 0
    completion_tokens: int | None = None
    answered: int = 0
    cost_usd: float | None = None
    priced: int = 0


def spent(*, project_id: int, conversation: str, prices: BudgetTable) -> Spent:
    """Of a conversation that exists. Two queries."""
    row = named(project_id, conversation)
    if row is None:
        return Spent(calls=0, is_known=False)
    calls = row.generation + (row.side_calls or 0) + (row.earlier_attempts or 0)
    if calls > MOST_CALLS:
        return Spent(calls=calls, is_known=False)
    is_told = Q(prompt_tokens__isnull=False)
    sums = list(
        calls_of(row)
        .values("model", "model_key")
        .annotate(
            calls=Count("id"),
            told=Count("prompt_tokens"),
            prompt=Sum("prompt_tokens"),
            answered=Count("completion_tokens"),
            completion=Sum("completion_tokens"),
            # A part of a prompt that nobody counted would be taken from those of other calls.
            cached=Sum("cached_tokens", filter=is_told),
            written=Sum("cache_write_tokens", filter=is_told),
        )
        .order_by("model", "model_key")
    )
    costs = [
        (cost, each["told"])
        for each in sums
        if each["told"]
        and (
            cost := cost_usd(
                prices.lookup(each["model"], key=each["model_key"]),
                prompt=each["prompt"],
                cached=each["cached"] or 0,
                written=each["written"] or 0,
                completion=each["completion"] or 0,
            )
        )
        is not None
    ]
    told, answered = sum(each["told"] for each in sums), sum(each["answered"] for each in sums)
    return Spent(
        calls=sum(each["calls"] for each in sums),
        is_known=True,
        prompt_tokens=sum(each["prompt"] or 0 for each in sums) if told else None,
        told=told,
        completion_tokens=sum(each["completion"] or 0 for each in sums) if answered else None,
        answered=answered,
        cost_usd=sum(cost for cost, _ in costs) if costs else None,
        priced=sum(calls for _, calls in costs),
    )
