"""Whether the conversations of now would fit where they may have to go: the fallback that a budget
names, or another model that the same upstream lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from helmdash.answers import Doc, answer
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.learned_windows import WindowSource
from helmdash.core.budgets.preflight import BY_NEED, Room, room_for
from helmdash.queries import upstreams
from helmdash.queries.budgets import budgets
from helmdash.records.models import Conversation

# A conversation is of now for as long as a person may leave it for a meal.
ACTIVE: Final = timedelta(hours=1)
# The newest that are looked at; more at once are read in no list.
MOST_LOOKED_AT: Final = 1_000
# Shown of each place, those that need it most.
_SHOWN: Final = 20
# Of an upstream: who lists hundreds is no fallback of one model.
_MOST_MODELS: Final = 20


@answer("PreflightConversation")
@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightConversation:
    """A conversation of now, and how its newest prompt would stand there."""

    id: str
    model: str
    prompt_tokens: int | None
    room: Room


@answer("Preflight")
@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Conversations of now that may have to go to another model, and how they would stand there."""

    kind: Annotated[
        Literal["fallback", "upstream"],
        Doc("fallback: the budget names it. upstream: the same upstream lists both."),
    ]
    source: Annotated[str, Doc("Key of the budget's row, or the upstream's name.")]
    model: Annotated[str, Doc("Where they would go.")]
    limit_tokens: int | None
    input_tokens: int
    conversations: int
    fits: int
    caution: int
    critical: int
    too_long: int
    unknown: int
    worst: Annotated[tuple[PreflightConversation, ...], Doc("Those that need it most, 20 at most.")]

    @property
    def would_not_fit(self) -> int:
        """Above its limit or ceiling, or at critical at once."""
        return self.too_long + self.critical


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflights:
    """looked_at: conversations with a call in the last hour, the newest 1,000 at most."""

    items: tuple[Preflight, ...]
    looked_at: int


def preflights(*, project_id: int, now: datetime) -> Preflights:
    """Of all fallbacks and of all upstreams that list several models. At most four queries."""
    table = budgets.table(project_id=project_id)
    found = _active(project_id, now)
    return Preflights(
        items=(*_fallbacks(table, found), *_siblings(table, project_id, found)),
        looked_at=len(found),
    )


def fallback_preflights(*, project_id: int, now: datetime) -> tuple[Preflight, ...]:
    """Of the fallbacks that budgets name. Two queries."""
    return _fallbacks(budgets.table(project_id=project_id), _active(project_id, now))


def upstream_preflights(*, project_id: int, now: datetime) -> tuple[Preflight, ...]:
    """Of upstreams that list several models. At most four queries."""
    table = budgets.table(project_id=project_id)
    return _siblings(table, project_id, _active(project_id, now))


def conversations_of(
    *, project_id: int, kind: str, source: str, model: str, room: Room | None, now: datetime
) -> tuple[PreflightConversation, ...] | None:
    """The conversations that a figure of a preflight counts, those that need it most first; None
    where there is no such way now. room: None: all of them. At most four queries."""
    table = budgets.table(project_id=project_id)
    found = _active(project_id, now)
    if kind == "fallback":
        those = _fallback_ways(table, found).get((source, model))
    else:
        ways = _sibling_ways(table, project_id, found)
        those = next((some for name, to, some in ways if (name, to) == (source, model)), None)
    if those is None:
        return None
    return tuple(
        PreflightConversation(
            id=each.id, model=each.model, prompt_tokens=each.prompt_tokens, room=stands
        )
        for stands, each in _by_need(table.lookup(model), those)
        if room is None or stands is room
    )


def warnings_of(found: Iterable[Preflight], keys: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each of these rows whose fallback would not take all conversations of now."""
    wanted = {key.lower() for key in keys}
    return tuple(
        f"{each.would_not_fit} of {each.conversations} conversations of now would not fit "
        f"{each.model}, the fallback of {each.source or 'the fallback row'}: "
        f"{each.too_long} too long, {each.critical} critical there."
        for each in found
        if each.source.lower() in wanted and each.would_not_fit
    )


@dataclass(frozen=True, slots=True)
class _Active:
    id: str
    model: str
    model_key: str | None
    prompt_tokens: int | None


def _active(project_id: int, now: datetime) -> list[_Active]:
    rows = (
        Conversation.objects.filter(project_id=project_id, latest_at__gte=now - ACTIVE)
        .order_by("-latest_at", "-id")
        .values_list("name", "model", "model_key", "prompt_tokens", "level_reason")
    )
    return [
        # A count that is not trusted tells nothing of what would be sent.
        _Active(id, model, key, None if why == HealthReason.SUSPECTED_CUT.value else prompt)
        for id, model, key, prompt, why in rows[:MOST_LOOKED_AT]
    ]


def _fallbacks(table: BudgetTable, found: Sequence[_Active]) -> tuple[Preflight, ...]:
    return tuple(
        _preflight("fallback", key, model, table, those)
        for (key, model), those in _fallback_ways(table, found).items()
    )


def _fallback_ways(
    table: BudgetTable, found: Sequence[_Active]
) -> dict[tuple[str, str], list[_Active]]:
    """By the key of a row and its fallback: the conversations that the row rules."""
    ways: dict[tuple[str, str], list[_Active]] = {
        (row.key, row.fallback_model.strip()): []
        for row in table.parts.rows
        if row.enabled and row.fallback_model.strip()
    }
    if not ways:
        return ways
    for each in found:
        budget = table.lookup(each.model, key=each.model_key)
        ways.get((budget.key, budget.fallback_model.strip()), []).append(each)
    return ways


def _siblings(
    table: BudgetTable, project_id: int, found: Sequence[_Active]
) -> tuple[Preflight, ...]:
    return tuple(
        _preflight("upstream", name, model, table, those)
        for name, model, those in _sibling_ways(table, project_id, found)
    )


def _sibling_ways(
    table: BudgetTable, project_id: int, found: Sequence[_Active]
) -> list[tuple[str, str, list[_Active]]]:
    """An upstream, a model that it lists, and the conversations of its other ones."""
    ways = []
    for endpoint in upstreams.listing(project_id=project_id):
        models = _listed(endpoint, table)
        if not endpoint.enabled or endpoint.shadowed or len(models) < 2:
            continue
        keys = {model: table.key_of(model, provider=endpoint.name) for model in models}
        here = [each for each in found if each.model_key in keys.values()]
        for model in models:
            others = [each for each in here if each.model_key != keys[model]]
            if others:
                ways.append((endpoint.name, model, others))
    return ways


def _listed(endpoint: upstreams.UpstreamInfo, table: BudgetTable) -> list[str]:
    """The models that an upstream lists: by its variables, else as its listing told their windows.
    A pattern is no model."""
    told = endpoint.models or [
        each.key
        for each in table.parts.windows
        if each.source is WindowSource.SERVER and each.key.startswith(f"{endpoint.name}/")
    ]
    return [model for model in told if "*" not in model][:_MOST_MODELS]


def _preflight(
    kind: Literal["fallback", "upstream"],
    source: str,
    model: str,
    table: BudgetTable,
    found: Sequence[_Active],
) -> Preflight:
    budget = table.lookup(model)
    rooms = _by_need(budget, found)
    counts = {room: sum(each is room for each, _ in rooms) for room in Room}
    return Preflight(
        kind=kind,
        source=source,
        model=model,
        limit_tokens=budget.limit_tokens,
        input_tokens=budget.input_tokens,
        conversations=len(found),
        fits=counts[Room.FITS],
        caution=counts[Room.CAUTION],
        critical=counts[Room.CRITICAL],
        too_long=counts[Room.TOO_LONG],
        unknown=counts[Room.UNKNOWN],
        worst=tuple(
            PreflightConversation(
                id=each.id, model=each.model, prompt_tokens=each.prompt_tokens, room=room
            )
            for room, each in rooms[:_SHOWN]
            if room is not Room.FITS
        ),
    )


def _by_need(budget: EffectiveBudget, found: Iterable[_Active]) -> list[tuple[Room, _Active]]:
    """How each would stand under a budget, the worst first."""
    rooms = [(room_for(each.prompt_tokens, budget), each) for each in found]
    return sorted(rooms, key=lambda pair: (BY_NEED.index(pair[0]), -(pair[1].prompt_tokens or 0)))
