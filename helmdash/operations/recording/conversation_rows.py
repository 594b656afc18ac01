"""The conversations of one batch: read and locked, or made.

Plain values instead of model instances: a gateway's call often starts a conversation, and making
an instance costs as much as inserting a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter

from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.budgets.lines import DEFAULT_OPTIMAL_MAX_TOKENS
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.placement import (
    LatestClear,
    is_as_large,
    is_history,
    is_late,
)
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.models import Conversation
from helmdash.records.querysets import calls_of
from helmdash.records.statements.bulk import allocate_ids
from helmdash.records.statements.direct import Question
from helmdash.records.statements.locking import lock_question, lock_rows

# What a call changes.
MOVING_COLUMNS = (
    "model",
    "model_key",
    "client_name",
    "client_version",
    "client_window",
    "round_number",
    "generation",
    "level",
    "severity",
    "level_reason",
    "known_level",
    "prompt_tokens",
    "limit_tokens",
    "limit_source",
    "optimal_max_tokens",
    "critical_max_tokens",
    "attention",
    "recent_failures",
    "latest_cause",
    "cut_generation",
    "held_level",
    "snoozed_until",
    "snoozed_rank",
    "failures",
    "trims",
    "started_at",
    "latest_at",
    "cleared_at",
    "late_until",
    "is_round_empty",
    "trace",
    "parent",
    "side_calls",
    "earlier_attempts",
    "newest_stream",
    "context",
    "client_refusal",
)
# A hook writes when the client compacted; calls only look at it.
CONVERSATION_COLUMNS = ("id", "project_id", "name", *MOVING_COLUMNS, "client_compacted_at")


@dataclass(slots=True)
class ConversationRow:
    """One row of Conversation, by attribute name; `is_new`: not inserted yet."""

    id: int
    project_id: int
    name: str
    model: str
    model_key: str | None
    client_name: str | None
    client_version: str | None
    client_window: int | None
    round_number: int
    generation: int
    level: str
    severity: int
    level_reason: str
    known_level: str
    prompt_tokens: int | None
    limit_tokens: int | None
    limit_source: str
    optimal_max_tokens: int
    critical_max_tokens: int | None
    attention: int
    recent_failures: int
    latest_cause: str | None
    cut_generation: int | None
    held_level: str | None
    snoozed_until: datetime | None
    snoozed_rank: int | None
    failures: int
    trims: int
    started_at: datetime
    latest_at: datetime
    cleared_at: datetime | None = None
    late_until: int | None = None
    is_round_empty: bool = False
    trace: list[object] | None = None
    parent: str | None = None
    side_calls: int | None = None
    earlier_attempts: int | None = None
    newest_stream: object = None
    context: str | None = None
    client_refusal: str | None = None
    client_compacted_at: datetime | None = None
    is_new: bool = False
    # Its severity as it is stored; None where this transaction has made it.
    stood_at: int | None = None


class ConversationIds:
    """Primary keys for the conversations that a batch starts: at most `most`, one for each call.

    One source for the whole transaction, for on SQLite keys are only taken by inserting.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: Iterator[int] | None = None

    def take(self) -> int:
        """The next primary key of a new conversation; all are reserved when the first is asked
        for."""
        if self._ids is None:
            self._ids = iter(allocate_ids(Conversation, self._most))
        return next(self._ids)


def make_row(*, pk: int, project_id: int, name: str, item: Judged) -> ConversationRow:
    """A new conversation, not stored yet, that `item` is about to be the first call of."""
    return ConversationRow(
        id=pk,
        project_id=project_id,
        name=name,
        model=item.capture.model,
        model_key=item.model_key,
        client_name=item.capture.client_name,
        client_version=item.capture.client_version,
        client_window=item.client_window,
        round_number=1,
        generation=0,
        level=Level.UNKNOWN.value,
        severity=LEVELS[Level.UNKNOWN].severity,
        level_reason="",
        known_level="",
        prompt_tokens=None,
        limit_tokens=None,
        limit_source="",
        optimal_max_tokens=DEFAULT_OPTIMAL_MAX_TOKENS,
        critical_max_tokens=None,
        attention=0,
        recent_failures=0,
        latest_cause=None,
        cut_generation=None,
        held_level=None,
        snoozed_until=None,
        snoozed_rank=None,
        failures=0,
        trims=0,
        started_at=item.started_at,
        latest_at=item.started_at,
        parent=item.capture.parent,
        is_new=True,
    )


def lock_by_name(project_id: int, names: Collection[str]) -> list[ConversationRow]:
    """Locked in the order of their names, so that two transactions cannot wait for each other;
    those that do not exist are left out."""
    return _locked(project_id, "name", names)


def lock_question_by_name(project_id: int, names: Collection[str]) -> Question:
    """What `lock_by_name` asks."""
    return lock_question(
        Conversation, CONVERSATION_COLUMNS, project_id=project_id, column="name", values=names
    )


def lock_by_id(project_id: int, ids: Collection[int]) -> list[ConversationRow]:
    """Locked in the order of their ids, so that two transactions cannot wait for each other; those
    that do not exist are left out."""
    return _locked(project_id, "id", ids)


def make_named(
    project_id: int, firsts: dict[str, Judged], ids: ConversationIds
) -> dict[str, ConversationRow]:
    """Conversations that are not there yet, each before its first call (`firsts`).

    The rows wait until their calls are known. Of two who begin the same one the second meets the
    first at its name, and starts again.
    """
    return {
        name: make_row(pk=ids.take(), project_id=project_id, name=name, item=item)
        for name, item in firsts.items()
    }


def is_unused(row: ConversationRow) -> bool:
    """Whether no call is in it: it was made for one that is not placed yet."""
    return row.generation == 0 and not row.side_calls


def is_late_call(row: ConversationRow, item: Judged) -> bool:
    """Whether the call belongs to the round before the open one (core.conversations.placement)."""
    if row.cleared_at is None and item.capture.round_number is None:
        return False  # asked thrice of every call, and told by nothing
    cleared = (
        LatestClear(at=row.cleared_at, late_until=row.late_until)
        if row.cleared_at is not None and row.late_until is not None
        else None
    )
    return is_late(
        round_number=row.round_number,
        began_in=item.capture.round_number,
        started_at=item.capture.started_at,
        generation=row.generation + 1,
        cleared=cleared,
        newest_at=row.latest_at,
        is_as_large=lambda: is_as_large(_prompt_before(row), item.health.prompt_tokens),
    )


def is_history_of(row: ConversationRow, item: Judged) -> bool:
    """Whether the call was made before what the conversation has (core.conversations.placement)."""
    return row.generation > 0 and is_history(
        is_transcript=tuple(item.capture.routes) == (CallRoute.TRANSCRIPT,),
        started_at=item.started_at,
        newest_at=row.latest_at,
    )


def is_past(row: ConversationRow, item: Judged) -> bool:
    """Whether the call says nothing about the open round: it is late, or history."""
    return is_late_call(row, item) or is_history_of(row, item)


def _prompt_before(row: ConversationRow) -> int | None:
    """The newest reported prompt of the round before the open one."""
    numbered = calls_of(row).filter(generation__isnull=False, prompt_tokens__isnull=False)
    calls = numbered.filter(round_number=row.round_number - 1)
    return calls.order_by("-generation").values_list("prompt_tokens", flat=True).first()


def row_values(row: ConversationRow, names: tuple[str, ...]) -> dict[str, object]:
    """The named columns of a row, two at least."""
    return dict(zip(names, _columns_of(names)(row), strict=True))


_columns_of = cache(lambda names: attrgetter(*names))


def _locked(
    project_id: int, column: str, values: Collection[str] | Collection[int]
) -> list[ConversationRow]:
    found = lock_rows(
        Conversation, CONVERSATION_COLUMNS, project_id=project_id, column=column, values=values
    )
    rows = [ConversationRow(*row) for row in found]
    for row in rows:
        row.stood_at = row.severity
    return rows
