"""A conversation while it is cared for: its locked row, and where remediation stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget, MatchRule
from helmdash.core.budgets.health import HealthReason, assess
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.care.remediation import CareState, Snapshot, new_round
from helmdash.core.care.stored import whole_of
from helmdash.core.conversations.attention import rank_after, rank_of
from helmdash.operations.care.values import Newest
from helmdash.records.conversation_names import present_name
from helmdash.records.models import Call, Conversation, Round
from helmdash.records.querysets import calls_of
from helmdash.records.statements.steps import (
    find_newest_call,
    find_opened,
    lock_conversation,
    store_care,
)

# An overflow says nothing about a request that is so much smaller than the one that was refused:
# its largest message is gone. (By how much that one was too long nobody told.)
_SHARE_OF_REFUSED = 0.7
# What tells why somebody should look, besides the level held.
_STANDING = (
    *("level", "known_level", "prompt_tokens", "optimal_max_tokens", "critical_max_tokens"),
    *("recent_failures", "latest_cause", "cut_generation", "client_refusal"),
    *("attention", "snoozed_until"),
)


@dataclass(slots=True, kw_only=True)
class LockedConversation:
    """The locked row of a conversation, with the care of its open round as it was last stored."""

    row: Conversation
    state: CareState
    cadence: int | None = None  # the one that held when it was last decided
    recorded: int | None = None  # calls recorded when it was last decided; None: it never was
    restart: Mapping[str, object] = field(default_factory=dict)  # of the open round, as stored
    has_inserts: bool = True  # prompts were recorded in it; True: perhaps
    first_waiting: int | None = None  # the first call that may answer a text that waits

    @property
    def is_under_way(self) -> bool:
        """A generation was decided, and no call has been recorded since."""
        return self.recorded is not None and self.row.generation <= self.recorded

    @property
    def is_held(self) -> bool:
        """Whether something will be due before the next generation as well, or may be."""
        return self.state.level is not None or self.has_inserts

    @property
    def next_generation(self) -> int:
        """The one about to start. A caller that numbers its own goes on from its own newest."""
        decided = self.state.generation
        if decided <= self.row.generation:
            return self.row.generation + 1
        return decided if self.is_under_way else decided + 1

    def save(
        self, state: CareState, *, cadence: int | None = None, recorded: int | None = None
    ) -> None:
        """Store where remediation stands now. cadence (generations) and recorded (calls) None: as
        before."""
        if state.level != self.state.level:
            self._hold(state.level)
        self.state = state
        self.cadence = cadence or self.cadence
        self.recorded = self.recorded if recorded is None else recorded
        store_care(self.row, care_json(state, self.cadence, self.recorded))

    def _hold(self, level: Level | None) -> None:
        """Tell the conversation which level is held: where the newest call's is unknown, somebody
        should look for that. Two queries."""
        self.row.refresh_from_db(fields=_STANDING)
        before = rank_of(self.row)
        self.row.held_level = level.value if level else None
        if self.row.snoozed_until is None:
            kept, now = self.row.attention, rank_of(self.row)
            self.row.attention = rank_after(kept, before=before, now=now)
        self.row.save(update_fields=["held_level", "attention"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The newest call of the open round as the budget of now judges it."""

    snapshot: Snapshot | None
    budget: EffectiveBudget
    newest: Newest | None = None


def care_json(state: CareState, cadence: int | None, recorded: int | None) -> dict[str, object]:
    """What `Round.care` holds: the state, the cadence that a page needs to tell the rest, and how
    many calls were recorded when it was decided. None: not known, and left out."""
    return {**state.to_json(), "cadence": cadence, "recorded": recorded}


def lock(project_id: int, name: str) -> LockedConversation | None:
    """The conversation of this name, or that had it before its agent's id was known, locked until
    the transaction ends; None if it does not exist. Two queries, three more if it was renamed."""
    row = lock_conversation(project_id=project_id, name=name)
    if row is None:
        present = present_name(project_id, name)
        row = lock_conversation(project_id=project_id, name=present) if present else None
    if row is None:
        return None
    found = find_opened(row)
    locked = LockedConversation(
        row=row,
        state=new_round(row.round_number),
        restart=found.restart,
        has_inserts=found.has_inserts,
        first_waiting=found.first_waiting,
    )
    if found.number is None:
        return locked
    state = CareState.from_json(found.care)
    stored = found.care if isinstance(found.care, dict) else {}
    locked.recorded = whole_of(stored.get("recorded"))
    if found.number == row.round_number == state.round_number:
        locked.state, locked.cadence = state, whole_of(stored.get("cadence"))
    else:
        # A round that a compaction opened has no care yet: it starts afresh, but generations go on.
        locked.state = new_round(row.round_number, generation=state.generation)
    return locked


def read(
    locked: LockedConversation,
    rules: BudgetTable,
    *,
    model: str | None,
    sent_bytes: Callable[[], int] | None = None,
) -> Reading:
    """Judge the newest call of the open round anew: by the budgets of now, for the model of now.

    model: the one about to be asked; None: the call's. A call of another round says nothing, nor
    does a prompt that was probably cut: its count is of what was left.
    sent_bytes: gives the size of the request about to be sent; asked only below the lines, and
    after an overflow.
    """
    row = locked.row
    call = find_newest_call(row)
    if call is None:
        return Reading(snapshot=None, budget=_of_row(rules, row, model))
    budget = _budget(rules, call, model)
    health = assess(call.prompt_tokens, budget)
    newest = None if call.level_reason == HealthReason.SUSPECTED_CUT.value else _newest(call)
    is_doubtful = call.level_reason == HealthReason.SUSPECTED_CUT.value
    is_overflow = _is_overflow(call, budget, model) and not _is_far_smaller(call, sent_bytes)
    return Reading(
        snapshot=Snapshot(
            round_number=row.round_number,
            generation=call.generation or 0,
            level=Level.UNKNOWN if is_doubtful else health.level,
            prompt_tokens=health.prompt_tokens,
            optimal_max_tokens=health.optimal_max_tokens,
            critical_max_tokens=health.critical_max_tokens,
            expected_tokens=_expected(newest, model, health.level, sent_bytes),
            limit_tokens=health.limit_tokens,
            is_overflow=is_overflow,
            is_first=is_overflow and _is_fresh(row) and not _has_fitted(row),
        ),
        budget=budget,
        newest=newest,
    )


def _expected(
    newest: Newest | None,
    model: str | None,
    level: Level,
    sent_bytes: Callable[[], int] | None,
) -> int | None:
    """The tokens of the request about to be sent, by the newest call's own bytes per token; asked
    only where it may say more than that call: below the lines, and of the same model."""
    if sent_bytes is None or newest is None or level is not Level.HEALTHY:
        return None
    if model is not None and model != newest.model:
        return None
    return newest.tokens_of(sent_bytes())


def _newest(call: Call) -> Newest | None:
    if not call.prompt_tokens or not call.sent_bytes:
        return None
    return Newest(model=call.model, prompt_tokens=call.prompt_tokens, sent_bytes=call.sent_bytes)


def _is_far_smaller(call: Call, sent_bytes: Callable[[], int] | None) -> bool:
    """Whether what was too long is not in the request about to be sent."""
    if sent_bytes is None or not call.sent_bytes:
        return False
    return bool(sent_bytes() <= _SHARE_OF_REFUSED * call.sent_bytes)


def _of_row(rules: BudgetTable, row: Call | Conversation, model: str | None) -> EffectiveBudget:
    """The budget of the model about to be asked; what is known of the newest call's holds for it.

    A client that goes on with another model most likely counts on a window of the same size.
    """
    is_same = not model or model == row.model
    return rules.lookup(
        model or row.model,
        key=row.model_key if is_same else None,
        client_window=row.client_window,
    )


def _budget(rules: BudgetTable, call: Call, model: str | None) -> EffectiveBudget:
    """The budget of the model about to be asked, by the name under which it has a row."""
    budget = _of_row(rules, call, model)
    if budget.rule is not MatchRule.FALLBACK or (model and model != call.model):
        return budget
    upstream = call.upstream_model or call.model
    for name in (f"{call.provider}/{upstream}" if call.provider else "", upstream):
        found = (
            rules.lookup(name, key=call.model_key, client_window=call.client_window)
            if name
            else budget
        )
        if found.rule is not MatchRule.FALLBACK:
            return found
    return budget


def _is_overflow(call: Call, budget: EffectiveBudget, model: str | None) -> bool:
    """Whether the provider refused the call as too long, and the model of now has no more room."""
    if call.cause != FailureCause.CONTEXT_OVERFLOW.value:
        return False
    if not model or model == call.model:
        return True
    was, now = call.limit_tokens, budget.limit_tokens
    return was is None or now is None or now <= was


def _is_fresh(row: Conversation) -> bool:
    """Whether the open round began with a clear. What came before a first call nobody knows."""
    rounds = Round.objects.filter(
        project_id=row.project_id, conversation=row, number=row.round_number
    )
    return rounds.filter(opened_by="clear").exists()


def _has_fitted(row: Conversation) -> bool:
    """Whether any call of the round was not too long: otherwise a clear would free nothing."""
    calls = calls_of(row).filter(round_number=row.round_number)
    return calls.exclude(cause=FailureCause.CONTEXT_OVERFLOW.value).exists()
