"""Who spends: what the calls of each client took in tokens and money, from rollups alone; and what
one call did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetFigures
from helmdash.core.budgets.prices import cost_usd
from helmdash.core.calls.outcomes import CallOutcome
from helmdash.core.rollups.figures import CALLS, Counts, Marginal, Tokens, under
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.calls.calls import CallView
from helmdash.queries.distinct_values import NamedModel, by_bare_name, meant_keys, model_keys
from helmdash.queries.models import MOST_MODELS, ModelRows, Rate, rate

# Far more than a project has; whoever makes calls chooses their names.
MOST_CLIENTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpending(NamedModel):
    """What one client's calls of one model took.

    model: as the client spells it most often. Tokens: None where no call reported any; `told` and
    `answered` calls did. cached_tokens: of the prompts of the `cache_told` calls that told of their
    cache, which had `cache_prompt` in all. cost_usd: of what the `told` calls reported, by the
    prices in today's budget; None where it has none.
    """

    calls: int
    clean: int
    prompt_tokens: int | None
    told: int
    completion_tokens: int | None
    answered: int
    cached_tokens: int
    cache_prompt: int
    cache_told: int
    cost_usd: float | None

    @property
    def tokens(self) -> int:
        """All that were reported; 0 also where none were."""
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpending:
    """What the calls of one client took; client None: of calls that named none.

    models: those with most tokens first. The sums are theirs; cost_usd: of the models with a price,
    whose `priced` calls reported tokens; None where no model has one.
    """

    client: str | None
    models: tuple[ModelSpending, ...]
    calls: int
    clean: Rate
    prompt_tokens: int | None
    told: int
    completion_tokens: int | None
    answered: int
    cached_share: float | None
    cache_told: int
    cost_usd: float | None
    priced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The clients with most tokens first, MOST_CLIENTS at most, of so many; calls: of them all.

    is_rounded: the range was told in whole quarter-hours. is_behind: the newest calls are not
    added up yet.
    """

    clients: tuple[ClientSpending, ...]
    of: int
    calls: int
    is_rounded: bool
    is_behind: bool


def spending(
    *,
    project_id: int,
    model: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Spending | None:
    """What each client's calls took that started from `since` to before `until` (None: no such
    bound), of one model (any spelling) or of all.

    Of any purpose: figures do not tell a client's apart. Two queries and one for each edge of the
    range, two more with a model. None: calls from before figures were kept by client are still
    to be counted.
    """
    keys = None if model is None else model_keys(project_id=project_id, model=model)
    found = rollups.figures(
        project_id=project_id, marginal=Marginal.SPENDING, since=since, until=until
    )
    if found is None:
        return None
    prices = budgets.table(project_id=project_id)
    totals = found.totals(lambda key: keys is None or key[1] in keys)
    known = by_bare_name({key: None for _, key in totals})
    by_client: dict[str, list[ModelSpending]] = {}
    for (client, key), counts in totals.items():
        by_client.setdefault(client, []).append(_of_model(key, counts, prices, known))
    clients = [_of_client(client or None, models) for client, models in by_client.items()]
    clients.sort(key=lambda each: (-_tokens(each.models), -each.calls, each.client or ""))
    return Spending(
        clients=tuple(clients[:MOST_CLIENTS]),
        of=len(clients),
        calls=sum(each.calls for each in clients),
        is_rounded=found.is_rounded,
        is_behind=found.is_behind,
    )


def cost_of_call(call: CallView, budget: BudgetFigures) -> float | None:
    """What one call took, in USD, by today's prices; None where its model has none, or it reported
    no prompt."""
    usage = call.usage
    if usage.prompt_tokens is None:
        return None
    return cost_usd(
        budget,
        prompt=usage.prompt_tokens,
        cached=usage.cached_tokens or 0,
        written=usage.cache_write_tokens or 0,
        completion=usage.completion_tokens or 0,
    )


def uncounted(found: ModelRows, by_client: Spending | None) -> int:
    """Calls whose models are told and whose clients are not, since they were deleted before these
    were counted; 0 where that cannot be told. Both of one range, of every purpose."""
    is_whole = found.models <= MOST_MODELS and not found.left_out
    if by_client is None or not is_whole or any(row.is_sample for row in found.rows):
        return 0
    return max(0, sum(row.calls for row in found.rows) - by_client.calls)


def _of_model(
    key: str, counts: Counts, prices: BudgetTable, known: Mapping[str, Sequence[str]]
) -> ModelSpending:
    told, answered = counts.get(f"{Tokens.PROMPT}#", 0), counts.get(f"{Tokens.COMPLETION}#", 0)
    spelt = under(counts, "s")
    model = max(sorted(spelt), key=lambda word: spelt[word], default=key)
    cost = cost_usd(
        prices.lookup(model, key=key),
        prompt=counts.get(Tokens.PROMPT, 0),
        cached=counts.get(Tokens.CACHED, 0),
        written=counts.get(Tokens.CACHE_WRITE, 0),
        completion=counts.get(Tokens.COMPLETION, 0),
    )
    return ModelSpending(
        model=model,
        model_key=key,
        is_shared=meant_keys(model, rules=prices, known=known) != (key,),
        calls=counts[CALLS],
        clean=counts.get(f"o:{CallOutcome.CLEAN}", 0),
        prompt_tokens=counts.get(Tokens.PROMPT, 0) if told else None,
        told=told,
        completion_tokens=counts.get(Tokens.COMPLETION, 0) if answered else None,
        answered=answered,
        cached_tokens=counts.get("hit", 0),
        cache_prompt=counts.get("hit/", 0),
        cache_told=counts.get("hit#", 0),
        cost_usd=cost if told else None,
    )


def _of_client(client: str | None, models: Iterable[ModelSpending]) -> ClientSpending:
    ranked = sorted(models, key=lambda each: (-each.tokens, -each.calls, each.model_key))
    calls = sum(each.calls for each in ranked)
    cache_prompt = sum(each.cache_prompt for each in ranked)
    cached = sum(each.cached_tokens for each in ranked)
    costs = [each for each in ranked if each.cost_usd is not None]
    return ClientSpending(
        client=client,
        models=tuple(ranked),
        calls=calls,
        clean=rate(sum(each.clean for each in ranked), calls),
        prompt_tokens=_sum(each.prompt_tokens for each in ranked),
        told=sum(each.told for each in ranked),
        completion_tokens=_sum(each.completion_tokens for each in ranked),
        answered=sum(each.answered for each in ranked),
        cached_share=cached / cache_prompt if cache_prompt else None,
        cache_told=sum(each.cache_told for each in ranked),
        cost_usd=sum(each.cost_usd or 0.0 for each in costs) if costs else None,
        priced=sum(each.told for each in costs),
    )


def _sum(tokens: Iterable[int | None]) -> int | None:
    known = [each for each in tokens if each is not None]
    return sum(known) if known else None


def _tokens(models: Iterable[ModelSpending]) -> int:
    return sum(each.tokens for each in models)
