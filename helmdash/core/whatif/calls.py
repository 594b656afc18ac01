"""Recorded calls judged under today's budgets and under edited ones, by the code that recording
uses; and what care would have done at them.

What cannot be known is not guessed: prompts are those that were sent, so that a call after a clear
that never happened is not counted, and the figures of a model that was never asked stay out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.judged import judge_health
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.prices import cost_usd
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.routes import CallRoute, split_routes
from helmdash.core.care.remediation import (
    CareAction,
    CareState,
    Snapshot,
    Strength,
    advance,
    new_round,
)
from helmdash.core.text.tokens import Estimator

# The two sides of every comparison: under today's budgets, and with the edits.
WAS: Final = "was"
NOW: Final = "now"


class RecordedCall(NamedTuple):
    """What a call tells of itself that a budget has a say in. None: not told."""

    pk: int
    started_at: datetime
    name: str
    model: str
    model_key: str | None
    client_window: int | None
    purpose: str
    status: str
    cause: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    sent_bytes: int | None
    sent_images: int | None
    limit_tokens: int | None
    limit_source: str
    level_reason: str
    conversation_id: int | None
    round_number: int | None
    generation: int | None
    routes: str | None
    provider: str
    upstream_model: str

    @property
    def served(self) -> tuple[str, ...]:
        """What its upstream may call the model, the surest first; none where another program chose
        the upstream, whose calls are judged by the model as told."""
        if not self.provider or _OWN.isdisjoint(split_routes(self.routes)):
            return ()
        names = (self.upstream_model, self.model)
        return tuple(f"{self.provider}/{name}" for name in names if name)


# Doors at which HelmDash chooses the upstream.
_OWN: Final = frozenset({CallRoute.GATEWAY.value, CallRoute.PLANNER.value})


@dataclass(frozen=True, slots=True)
class Side:
    """A call under one budget. cost_usd: None where tokens or prices are not known.

    is_over: its prompt is above the input ceiling, as reported, or as estimated where nothing was
    reported; None: neither is known. is_refused: the gateway would refuse it where the project's
    budget mode is enforce, by the estimate it makes before it sends; None: its size was not told.
    """

    budget: EffectiveBudget
    health: Health
    is_over: bool | None
    is_refused: bool | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """A call under today's budget and under the edited one."""

    call: RecordedCall
    was: Side
    now: Side

    @property
    def model(self) -> str:
        """What its model is counted by."""
        return self.call.model_key or self.call.model

    @property
    def has_costs(self) -> bool:
        """Whether it has a cost under both, which can be compared."""
        return self.was.cost_usd is not None and self.now.cost_usd is not None

    def figures(self) -> Iterator[str]:
        """The names of the figures that count this call."""
        yield "calls"
        yield f"level:{self.was.health.level}>{self.now.health.level}"
        if self.was.health.level is not self.now.health.level:
            yield "level:other"
        for side, name in ((self.was, WAS), (self.now, NOW)):
            if side.is_over:
                yield f"over:{name}"
            if side.is_refused:
                yield f"refused:{name}"
            if side.cost_usd is not None:
                yield f"priced:{name}"
        if self.has_costs:
            yield "priced:both"
        if self.now.is_over and not self.was.is_over:
            yield "over:new"
        if self.now.is_refused and not self.was.is_refused:
            yield "refused:new"


class _Governed(NamedTuple):
    budget: EffectiveBudget
    estimator: Estimator


@dataclass(slots=True)
class Judge:
    """Two tables, and what each answered for a kind of call so far."""

    was: BudgetTable
    now: BudgetTable
    _known: dict[object, tuple[_Governed, _Governed]] = field(default_factory=dict)

    def pair(self, call: RecordedCall) -> Pair:
        """The call under both."""
        was, now = self._budgets(call)
        before = _side(call, was)
        # Most models are not touched by the edits.
        return Pair(call, before, before if was is now else _side(call, now))

    def _budgets(self, call: RecordedCall) -> tuple[_Governed, _Governed]:
        # A window that a server told for this call alone is in nobody's table.
        server = call.limit_tokens if call.limit_source == LimitSource.SERVER.value else None
        served = call.served
        asked = (call.model, call.model_key, call.client_window, server, served)
        found = self._known.get(asked)
        if found is None:
            given = {
                "key": call.model_key,
                "client_window": call.client_window,
                "server_window": server,
            }
            was = self.was.lookup(_known_as(self.was, call.model, served), **given)  # type: ignore[arg-type]
            now = self.now.lookup(_known_as(self.now, call.model, served), **given)  # type: ignore[arg-type]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            before = _Governed(was, was.estimator)
            after = before if was == now else _Governed(now, now.estimator)
            found = self._known[asked] = (before, after)
        return found


# Model ids and windows come from callers.
_MOST_KNOWN: Final = 4_096


def _known_as(table: BudgetTable, model: str, served: Iterable[str]) -> str:
    """The id that a table's rows know the model by, as the gateway asks when it has an upstream."""
    names = (table.name_of(model, served=each) for each in served)
    return next((name for name in names if name is not None), model)


def _side(call: RecordedCall, governed: _Governed) -> Side:
    budget = governed.budget
    health = judge_health(
        call.prompt_tokens,
        budget,
        is_success=call.status == "success",
        purpose=call.purpose,
        is_cut=call.level_reason == HealthReason.SUSPECTED_CUT.value,
    ).health
    estimate = (
        None
        if call.sent_bytes is None
        else governed.estimator.tokens_of_request(call.sent_bytes, images=call.sent_images or 0)
    )
    prompt = call.prompt_tokens or estimate
    cost = None
    if call.prompt_tokens is not None and call.completion_tokens is not None:
        cost = cost_usd(
            budget,
            prompt=call.prompt_tokens,
            cached=call.cached_tokens or 0,
            written=call.cache_write_tokens or 0,
            completion=call.completion_tokens,
        )
    return Side(
        budget,
        health,
        None if prompt is None else prompt > budget.input_tokens,
        None if estimate is None else estimate > budget.input_tokens,
        cost,
    )


@dataclass(slots=True)
class Care:
    """Remediation at the calls of one conversation, in their order, under one budget."""

    state: CareState = field(default_factory=CareState)
    before: Snapshot | None = None
    is_cleared: bool = False

    def figures(self, call: RecordedCall, side: Side, name: str) -> Iterator[str]:
        """What care would have done before this call. name: of the side."""
        generation, number = call.generation or 0, call.round_number or 1
        if number != self.state.round_number:
            self.state = new_round(number, generation=generation - 1)
            self.is_cleared, self.before = False, None
        if not self.is_cleared:
            held = self.state.level
            self.state, decision = advance(
                self.state,
                generation=generation,
                snapshot=self.before,
                cadence=side.budget.caution_cadence,
                has_user_prompt=False,
            )
            if self.state.level is Level.CRITICAL and held is not Level.CRITICAL:
                yield f"countdown:{name}"
            if decision.action is CareAction.CLEAR:
                # What comes after it would have been another history.
                self.is_cleared = True
                yield f"clear:{name}"
            elif decision.strength in (Strength.SOFT, Strength.HARD):
                yield f"guided:{name}"
        self.before = _snapshot(call, side, is_first=self.before is None)


def _snapshot(call: RecordedCall, side: Side, *, is_first: bool) -> Snapshot:
    health = side.health
    is_overflow = call.cause == FailureCause.CONTEXT_OVERFLOW.value
    return Snapshot(
        round_number=call.round_number or 1,
        generation=call.generation or 0,
        level=health.level,
        prompt_tokens=health.prompt_tokens,
        optimal_max_tokens=health.optimal_max_tokens,
        critical_max_tokens=health.critical_max_tokens,
        limit_tokens=health.limit_tokens,
        is_overflow=is_overflow,
        is_first=is_overflow and is_first,
    )


def care_figures(judge: Judge, calls: Iterable[RecordedCall]) -> Iterator[tuple[Pair, list[str]]]:
    """What care would have done at each call of one conversation; calls: its main ones, in order.

    It begins afresh with the first of them, since what came before is not looked at.
    """
    was, now = Care(), Care()
    for call in calls:
        pair = judge.pair(call)
        found = [*was.figures(call, pair.was, WAS), *now.figures(call, pair.now, NOW)]
        if f"clear:{NOW}" in found and f"clear:{WAS}" not in found:
            found.append("clear:new")
        yield pair, found
