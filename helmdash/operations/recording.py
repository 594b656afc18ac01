"""Recording calls: one transaction for a whole batch, safe among concurrent writers.

place (core.conversations) -> normalise (core.usage, core.finish) -> classify (core.failures)
-> level (core.health) -> rows. Returns only after the commit, so that a 2xx means stored.

Concurrency: on PostgreSQL the rows of the batch's conversations are locked in one order before
anything is numbered; on SQLite the transaction takes the write lock at its start. Two writers that
bring the same id at once meet at a unique constraint; the later one starts again and finds it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, OperationalError, connection, transaction

from helmdash.core import conversations as placing
from helmdash.core.capture import Capture
from helmdash.core.failures import Cause
from helmdash.core.finish import FinishReason
from helmdash.core.health import Health, Level
from helmdash.operations import call_rows
from helmdash.operations.judging import Judged, judge
from helmdash.queries import budgets
from helmdash.queries.access import ProjectInfo
from helmdash.queries.calls import view
from helmdash.records.bulk import (
    allocate_ids,
    find_existing,
    insert_rows,
    update_rows,
    upsert_rows,
)
from helmdash.records.models import (
    Call,
    CallPayload,
    Conversation,
    HealthChange,
    Round,
    StoredMessage,
)
from helmdash.records.models.conversations import SEVERITY

# Two writers that meet start again. Each meeting settles at least one id or conversation, so that
# many in a row happen only to large batches of repeats that several writers send at once.
_ATTEMPTS = 10
# unique_violation, deadlock_detected, serialization_failure
_COLLISIONS = frozenset({"23505", "40P01", "40001"})
# A message that comes with every call need not be written with every call.
MESSAGE_SEEN_PRECISION = timedelta(days=1)
# SQLite has one writer; waiting in line here is fair, its own busy handler is not.
_sqlite_writer = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The answer to one recorded call; the same for every repeat of its id."""

    id: str
    conversation: str | None
    round_number: int | None
    generation: int | None
    health: Health
    finish_reason: FinishReason | None
    cause: Cause | None
    duplicate: bool


class Collision(Exception):
    """Another writer took away what this batch had just found; starting again finds the truth."""


def record_calls(
    *, project: ProjectInfo, captures: Sequence[Capture], caller: str, now: datetime
) -> tuple[Recorded, ...]:
    """Store calls, in order, and answer each with its place and verdicts.

    A capture whose id the project knows already is answered with the first answer and
    `duplicate=True`, whatever it says now. Raises what the database raises when it is away.
    """
    rules = budgets.table(project_id=project.id)
    judged = [judge(_named(capture, now), rules, caller=caller, now=now) for capture in captures]
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _writer(), transaction.atomic():
                return _record(project, judged, now)
        except (Collision, IntegrityError, OperationalError) as error:
            if attempt == _ATTEMPTS or not _is_collision(error):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _record(project: ProjectInfo, judged: Sequence[Judged], now: datetime) -> tuple[Recorded, ...]:
    conversations = _lock_conversations(project.id, judged)
    known = _known_calls(project.id, [item.capture.id or "" for item in judged])
    writer = _Batch(project, conversations, now)
    answers: list[Recorded] = []
    for item in judged:
        name = item.capture.id or ""
        first = known.get(name)
        if first is None:
            first = known[name] = writer.take(item)
            answers.append(first)
        else:
            answers.append(replace(first, duplicate=True))
    writer.write()
    _delete_unused(conversations)
    return tuple(answers)


class _Batch:
    """The rows of one transaction, collected call by call and written at once."""

    def __init__(
        self, project: ProjectInfo, conversations: dict[str, Conversation], now: datetime
    ) -> None:
        self._project = project
        self._conversations = conversations
        self._now = now
        self._touched: dict[str, list[Judged]] = {}
        self._taken: list[tuple[Judged, Conversation | None]] = []
        self._call_rows: list[dict[str, object]] = []
        self._changes: list[dict[str, object]] = []

    def take(self, item: Judged) -> Recorded:
        """Give the call its place and remember its rows."""
        conversation = self._conversations.get(item.capture.conversation or "")
        if conversation is not None:
            self._advance(conversation, item)
        row = call_rows.call_row(item, conversation, project_id=self._project.id, now=self._now)
        self._call_rows.append(row)
        self._taken.append((item, conversation))
        return Recorded(
            id=item.capture.id or "",
            conversation=conversation.name if conversation else None,
            round_number=conversation.round_number if conversation else None,
            generation=conversation.generation if conversation else None,
            health=item.health,
            finish_reason=item.finish_reason,
            cause=item.cause,
            duplicate=False,
        )

    def write(self) -> None:
        """Insert and update everything. Raises IntegrityError when another writer was first."""
        if not self._call_rows:
            return
        ids = allocate_ids(Call, len(self._call_rows))
        for row, pk in zip(self._call_rows, ids, strict=True):
            row["id"] = pk
        insert_rows(Call, self._call_rows)
        self._write_payloads(ids)
        self._write_rounds()
        self._write_conversations()
        insert_rows(HealthChange, self._changes)

    def _advance(self, conversation: Conversation, item: Judged) -> None:
        step = placing.take_call(
            placing.Standing(
                round_number=conversation.round_number,
                generation=conversation.generation,
                level=Level(conversation.level),
                known_level=Level(conversation.known_level) if conversation.known_level else None,
            ),
            item.health.level,
        )
        if step.is_change:
            self._changes.append(
                {
                    "project_id": self._project.id,
                    "conversation_id": conversation.pk,
                    "generation": step.after.generation,
                    "from_level": step.from_level.value if step.from_level else "",
                    "to_level": step.after.level.value,
                    "at": item.started_at,
                }
            )
        _apply(conversation, step.after, item)
        self._touched.setdefault(conversation.name, []).append(item)

    def _write_payloads(self, ids: Sequence[int]) -> None:
        kept = self._project.payload
        payloads: list[dict[str, object]] = []
        messages: dict[str, object] = {}
        for (item, _), pk in zip(self._taken, ids, strict=True):
            row, stored = call_rows.payload_row(item, call_id=pk, payload=kept)
            messages.update(stored)
            if row is not None:
                payloads.append(row)
        insert_rows(CallPayload, payloads)
        self._write_messages(messages)

    def _write_messages(self, messages: dict[str, object]) -> None:
        """Store messages not seen lately; clients resend their history, so most have been."""
        project_id = self._project.id
        seen = {"project_id": project_id, "latest_seen_at": self._now - MESSAGE_SEEN_PRECISION}
        fresh = find_existing(StoredMessage, "hash", list(messages), seen)
        # In one order, so that two batches with common messages cannot wait for each other.
        upsert_rows(
            StoredMessage,
            [
                {
                    "project_id": project_id,
                    "hash": key,
                    "body": messages[key],
                    "latest_seen_at": self._now,
                }
                for key in sorted(messages.keys() - fresh)
            ],
            unique=("project_id", "hash"),
            update="latest_seen_at",
        )

    def _write_rounds(self) -> None:
        new: list[dict[str, object]] = []
        old: list[dict[str, object]] = []
        for name, items in self._touched.items():
            conversation = self._conversations[name]
            peak = max((item.health.prompt_tokens or 0 for item in items), default=0) or None
            is_new = conversation.generation == len(items)
            (new if is_new else old).append(_round_row(conversation, peak))
        insert_rows(Round, new)
        update_rows(
            Round,
            ("latest_generation", "peak_prompt_tokens"),
            old,
            keys=("project_id", "conversation_id", "number"),
            only_upwards=("peak_prompt_tokens",),
        )

    def _write_conversations(self) -> None:
        columns = call_rows.CONVERSATION_COLUMNS
        rows = [self._conversations[name] for name in self._touched]
        update_rows(
            Conversation,
            columns,
            [{name: getattr(row, name) for name in (*columns, "id")} for row in rows],
        )


def _apply(conversation: Conversation, after: placing.Standing, item: Judged) -> None:
    """Bring the conversation's row to where its newest call puts it."""
    health = item.health
    conversation.generation = after.generation
    conversation.level = after.level.value
    conversation.severity = SEVERITY[after.level]
    conversation.level_reason = health.reason.value if health.reason else ""
    conversation.known_level = after.known_level.value if after.known_level else ""
    conversation.model = item.capture.model
    conversation.prompt_tokens = health.prompt_tokens
    conversation.limit_tokens = health.limit_tokens
    conversation.limit_source = health.limit_source.value if health.limit_source else ""
    conversation.optimal_max_tokens = health.optimal_max_tokens
    conversation.critical_max_tokens = health.critical_max_tokens
    conversation.failures += item.cause is not None
    conversation.trims += item.is_trimmed
    # Reports may come late and out of order.
    conversation.latest_at = max(conversation.latest_at, item.started_at)
    conversation.started_at = min(conversation.started_at, item.started_at)


def _round_row(conversation: Conversation, peak: int | None) -> dict[str, object]:
    return {
        "project_id": conversation.project_id,
        "conversation_id": conversation.pk,
        "number": conversation.round_number,
        "first_generation": 1,
        "latest_generation": conversation.generation,
        "peak_prompt_tokens": peak,
        "started_at": conversation.started_at,
        "ended_at": None,
    }


def _lock_conversations(project_id: int, judged: Sequence[Judged]) -> dict[str, Conversation]:
    """The conversations of the batch, made where missing, locked in the order of their names."""
    names: dict[str, Judged] = {}
    for item in judged:
        if item.capture.conversation:
            names.setdefault(item.capture.conversation, item)
    if not names:
        return {}
    found = _read_locked(project_id, names)
    missing = sorted(set(names) - set(found))
    if not missing:
        return found
    Conversation.objects.bulk_create(
        [
            Conversation(
                project_id=project_id,
                name=name,
                model=names[name].capture.model,
                started_at=names[name].started_at,
                latest_at=names[name].started_at,
            )
            for name in missing
        ],
        ignore_conflicts=True,
    )
    # The ones another writer has just made are read and locked here as well.
    found |= _read_locked(project_id, missing)
    if len(found) < len(names):
        raise Collision("a conversation was deleted while a call of it came in")
    return found


def _delete_unused(conversations: dict[str, Conversation]) -> None:
    """Take back the conversations made for calls that turned out to be repeats."""
    unused = [row.pk for row in conversations.values() if row.generation == 0]
    if unused:
        # Nothing can refer to a row that was made in this transaction.
        Conversation.objects.filter(id__in=unused)._raw_delete(connection.alias)


def _read_locked(project_id: int, names: Collection[str]) -> dict[str, Conversation]:
    rows = Conversation.objects.filter(project_id=project_id, name__in=list(names))
    rows = rows.order_by("name")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update()
    return {row.name: row for row in rows}


def _known_calls(project_id: int, names: Sequence[str]) -> dict[str, Recorded]:
    """The first answers of those calls that are repeats; most batches hold none."""
    repeated = find_existing(Call, "name", names, {"project_id": project_id})
    if not repeated:
        return {}
    rows = Call.objects.filter(project_id=project_id, name__in=repeated)
    return {row.name: _first_answer(row) for row in rows.select_related("conversation")}


def _first_answer(row: Call) -> Recorded:
    """The answer the call got when it was first recorded, from what was stored then."""
    stored = view(row)
    return Recorded(
        id=stored.id,
        conversation=stored.conversation,
        round_number=stored.round_number,
        generation=stored.generation,
        health=stored.health,
        finish_reason=stored.finish_reason,
        cause=stored.cause,
        duplicate=True,
    )


def _named(capture: Capture, now: datetime) -> Capture:
    """A call without an id of its own gets one that sorts by time."""
    if capture.id:
        return capture
    made = f"call_{int(now.timestamp() * 1000):012x}{secrets.token_hex(8)}"
    return replace(capture, id=made)


@contextmanager
def _writer() -> Iterator[None]:
    if connection.vendor != "sqlite":
        yield
        return
    with _sqlite_writer:
        yield


def _is_collision(error: Exception) -> bool:
    """True when another writer was first (same id), or the database broke a deadlock.

    SQLite lets one writer in at a time: there an error of integrity is never one of these.
    """
    return isinstance(error, Collision) or getattr(error.__cause__, "sqlstate", None) in _COLLISIONS
