"""The conversations of one batch: read and locked, brought forward call by call, written at once.

Plain values instead of model instances: a gateway's call often starts a conversation, and making
an instance costs as much as inserting a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.budgets.lines import DEFAULT_OPTIMAL_MAX_TOKENS
from helmdash.core.conversations.attention import rank_of, with_newest
from helmdash.core.conversations.placement import (
    ConversationState,
    LatestClear,
    is_as_large,
    is_late,
    take_call,
)
from helmdash.operations.recording.judging import Judged
from helmdash.records.bulk import (
    allocate_ids,
    insert_missing,
    insert_rows,
    update_rows,
    upsert_rows,
)
from helmdash.records.locking import lock_rows
from helmdash.records.models import Conversation, HealthChange, Round
from helmdash.records.querysets import calls_of

# What a call changes.
_MOVING = (
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
    "context",
    "client_refusal",
)
# A hook writes when the client compacted; calls only look at it.
_COLUMNS = ("id", "project_id", "name", *_MOVING, "client_compacted_at")


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


def lock_by_id(project_id: int, ids: Collection[int]) -> list[ConversationRow]:
    """Locked in the order of their ids, so that two transactions cannot wait for each other; those
    that do not exist are left out."""
    return _locked(project_id, "id", ids)


def make_named(
    project_id: int, firsts: dict[str, Judged], ids: ConversationIds, *, is_alone: bool
) -> dict[str, ConversationRow]:
    """Conversations that are not there yet, each before its first call (`firsts`).

    `is_alone`: nobody else can write, so the rows can wait until their calls are known. Otherwise
    they are inserted now, for another writer may be making the same ones.
    """
    if is_alone:
        return {
            name: make_row(pk=ids.take(), project_id=project_id, name=name, item=firsts[name])
            for name in sorted(firsts)
        }
    made = {
        name: make_row(pk=0, project_id=project_id, name=name, item=firsts[name])
        for name in sorted(firsts)
    }
    values = [_values(row, _COLUMNS[1:]) for row in made.values()]
    keys = insert_missing(Conversation, values, unique=("project_id", "name"))
    for name, pk in keys.items():
        made[name].id, made[name].is_new = pk, False
    others = firsts.keys() - keys.keys()
    # Those that another writer has just made are read and locked.
    locked = {row.name: row for row in lock_by_name(project_id, others)} if others else {}
    return {name: made[name] for name in keys} | locked


def delete_unused(rows: Iterable[ConversationRow]) -> None:
    """Take back the conversations made for calls that turned out to be repeats."""
    unused = [
        row.id for row in rows if row.generation == 0 and not row.side_calls and not row.is_new
    ]
    if unused:
        # Nothing can refer to a row that was made in this transaction.
        Conversation.objects.filter(id__in=unused)._raw_delete(connection.alias)


class ConversationBatch:
    """What the calls of one transaction change about their conversations."""

    def __init__(self, project_id: int) -> None:
        self._project_id = project_id
        self._touched: dict[int, ConversationRow] = {}
        self._rounds: dict[tuple[int, int], dict[str, object]] = {}
        self._new_rounds: set[tuple[int, int]] = set()
        self._begun: list[dict[str, object]] = []  # rounds of a clear that get their first call
        self._changes: list[dict[str, object]] = []
        self._corrections: list[dict[str, object]] = []

    def take(self, row: ConversationRow, item: Judged, *, opened_by: str = "") -> int:
        """Number the conversation's next call, with `opened_by` as the first of a new round; gives
        the number of its round."""
        if is_late_call(row, item):
            return self._take_late(row, item)
        step = take_call(
            ConversationState(
                round_number=row.round_number,
                generation=row.generation,
                level=Level(row.level),
                known_level=Level(row.known_level) if row.known_level else None,
            ),
            item.health.level,
            # What a clear has opened is fresh already: its first call need not open another.
            opens_round=bool(opened_by) and not row.is_round_empty,
        )
        if step.is_change:
            self._changes.append(
                {
                    "project_id": self._project_id,
                    "conversation_id": row.id,
                    "generation": step.after.generation,
                    "from_level": step.from_level.value if step.from_level else "",
                    "to_level": step.after.level.value,
                    "at": item.started_at,
                }
            )
        before = row.round_number
        _apply(row, step.after, item)
        self._touched[row.id] = row
        # After side calls alone a clear may have opened a round already.
        if row.generation == 1 and not row.is_round_empty:
            self._open_round(row, item, "")
        elif row.round_number != before:
            self._round(row, before)["ended_at"] = item.started_at
            self._open_round(row, item, opened_by)
        elif row.is_round_empty:
            # A clear has opened it, at its own time; the first call says which one it begins with.
            self._begun.append(self._round(row, row.round_number))
            self._begun[-1]["first_generation"] = row.generation
        row.is_round_empty = False
        self._extend_round(row, item, row.round_number)
        return row.round_number

    def take_side(self, row: ConversationRow, item: Judged) -> None:
        """A call beside the conversation: counted, and neither numbered nor of any round. How full
        the conversation is, and what care knows of it, stay as they are."""
        if row.generation == 0:
            _name_model(row, item)
            row.level_reason = HealthReason.NO_MAIN_CALL.value
        row.side_calls = (row.side_calls or 0) + 1
        _count(row, item)
        self._touched[row.id] = row

    def correct(self, row: ConversationRow, item: Judged, *, generation: int | None) -> None:
        """Another door says better how large the prompt of a call was: where it is the newest one,
        its conversation stands by that."""
        if generation is None or generation != row.generation:
            return
        health = item.health
        if health.level.value != row.level:
            self._corrections.append(
                {
                    "project_id": self._project_id,
                    "conversation_id": row.id,
                    "generation": row.generation,
                    "from_level": row.level,
                    "to_level": health.level.value,
                    "at": item.started_at,
                }
            )
        _stand(row, item)
        if health.level is not Level.UNKNOWN:
            row.known_level = health.level.value
        row.attention = rank_of(row)
        self._touched[row.id] = row
        self._extend_round(row, item, row.round_number)

    def _take_late(self, row: ConversationRow, item: Judged) -> int:
        """A call of the round before: it has a number, and says nothing about the open round."""
        row.generation += 1
        number = max(row.round_number - 1, 1)
        if item.capture.round_number is not None:
            number = max(min(item.capture.round_number, number), 1)
        _count(row, item)
        self._touched[row.id] = row
        self._extend_round(row, item, number)
        return number

    def moved_levels(self) -> Counter[int]:
        """By how many more of the conversations, or fewer, stand at each severity than before."""
        moved: Counter[int] = Counter()
        for row in self._touched.values():
            moved[row.severity] += 1
            if row.stood_at is not None:
                moved[row.stood_at] -= 1
        return moved

    def write(self) -> None:
        """Insert and update everything. Raises IntegrityError when another writer was first."""
        rows = self._touched.values()
        insert_rows(Conversation, [_values(row, _COLUMNS) for row in rows if row.is_new])
        update_rows(
            Conversation,
            _MOVING,
            [_values(row, (*_MOVING, "id")) for row in rows if not row.is_new],
        )
        rounds = self._rounds.items()
        insert_rows(Round, [row for key, row in rounds if key in self._new_rounds])
        update_rows(
            Round,
            ("latest_generation", "peak_prompt_tokens", "ended_at"),
            [row for key, row in rounds if key not in self._new_rounds],
            keys=("project_id", "conversation_id", "number"),
            only_upwards=("latest_generation", "peak_prompt_tokens", "ended_at"),
        )
        update_rows(
            Round,
            ("first_generation",),
            self._begun,
            keys=("project_id", "conversation_id", "number"),
        )
        insert_rows(HealthChange, self._changes)
        upsert_rows(
            HealthChange,
            self._corrections,
            unique=("project_id", "conversation_id", "generation"),
            update="to_level",
        )

    def _open_round(self, row: ConversationRow, item: Judged, opened_by: str) -> None:
        values = self._round(row, row.round_number)
        values["first_generation"] = row.generation
        values["started_at"] = item.started_at
        values["opened_by"] = opened_by
        self._new_rounds.add((row.id, row.round_number))

    def _extend_round(self, row: ConversationRow, item: Judged, number: int) -> None:
        values = self._round(row, number)
        values["latest_generation"] = row.generation
        if (row.id, number) in self._new_rounds:
            # Reports may come late and out of order.
            started: Any = values["started_at"]
            values["started_at"] = min(started, item.started_at)
        peak: Any = values["peak_prompt_tokens"]
        values["peak_prompt_tokens"] = max(peak or 0, item.health.prompt_tokens or 0) or None

    def _round(self, row: ConversationRow, number: int) -> dict[str, object]:
        values = self._rounds.get((row.id, number))
        if values is None:
            values = self._rounds[row.id, number] = {
                "project_id": self._project_id,
                "conversation_id": row.id,
                "number": number,
                "first_generation": 0,
                "latest_generation": 0,
                "peak_prompt_tokens": None,
                "started_at": None,
                "ended_at": None,
                "opened_by": "",
            }
        return values


def is_late_call(row: ConversationRow, item: Judged) -> bool:
    """Whether the call belongs to the round before the open one (core.conversations.placement)."""
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


def _prompt_before(row: ConversationRow) -> int | None:
    """The newest reported prompt of the round before the open one."""
    calls = calls_of(row).filter(round_number=row.round_number - 1, prompt_tokens__isnull=False)
    return calls.order_by("-generation").values_list("prompt_tokens", flat=True).first()


def _apply(row: ConversationRow, after: ConversationState, item: Judged) -> None:
    """Bring the conversation's row to where its newest call puts it."""
    health = item.health
    if row.round_number != after.round_number:
        # What was cut, and what care held, went with the round.
        row.cut_generation = row.held_level = None
    row.round_number = after.round_number
    row.generation = after.generation
    _stand(row, item)
    row.known_level = after.known_level.value if after.known_level else ""
    _name_model(row, item)
    row.recent_failures = with_newest(row.recent_failures, is_failed=item.cause is not None)
    row.latest_cause = item.cause.name.value if item.cause else None
    row.client_refusal = None  # it goes on
    if health.reason is HealthReason.SUSPECTED_CUT:
        row.cut_generation = row.generation
    row.attention = rank_of(row)
    if row.snoozed_until is not None:
        if item.started_at >= row.snoozed_until or row.attention > (row.snoozed_rank or 0):
            row.snoozed_until = row.snoozed_rank = None  # news
        else:
            row.attention = 0
    _count(row, item)


def _stand(row: ConversationRow, item: Judged) -> None:
    """How full it is, by its newest call."""
    health = item.health
    row.level = health.level.value
    row.severity = LEVELS[health.level].severity
    row.level_reason = health.reason.value if health.reason else ""
    row.prompt_tokens = health.prompt_tokens
    row.limit_tokens = health.limit_tokens
    row.limit_source = health.limit_source.value if health.limit_source else ""
    row.optimal_max_tokens = health.optimal_max_tokens
    row.critical_max_tokens = health.critical_max_tokens


def _name_model(row: ConversationRow, item: Judged) -> None:
    # A status line tells the window between calls: the word holds for its model.
    is_same = row.model_key == item.model_key
    row.client_window = item.client_window or (row.client_window if is_same else None)
    row.model = item.capture.model
    row.model_key = item.model_key
    row.client_name = item.capture.client_name
    row.client_version = item.capture.client_version


def _count(row: ConversationRow, item: Judged) -> None:
    row.parent = row.parent or item.capture.parent
    row.failures += item.cause is not None
    row.trims += item.is_trimmed
    # Reports may come late and out of order.
    row.latest_at = max(row.latest_at, item.started_at)
    row.started_at = min(row.started_at, item.started_at)


def _values(row: ConversationRow, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(row, name) for name in names}


def _locked(
    project_id: int, column: str, values: Collection[str] | Collection[int]
) -> list[ConversationRow]:
    found = lock_rows(Conversation, _COLUMNS, project_id=project_id, column=column, values=values)
    rows = [ConversationRow(*row) for row in found]
    for row in rows:
        row.stood_at = row.severity
    return rows
