"""What the calls of one transaction change about their conversations."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from django.db.models import F

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.conversations.attention import rank_after, rank_of, with_newest
from helmdash.core.conversations.placement import ConversationState, take_call
from helmdash.core.conversations.repeated_streams import NewestStream
from helmdash.operations.recording.conversation_rows import (
    CONVERSATION_COLUMNS,
    MOVING_COLUMNS,
    ConversationRow,
    is_history_of,
    is_late_call,
    row_values,
)
from helmdash.operations.recording.judged.judging import Judged
from helmdash.operations.recording.repeated_streams import newest_stream, standing_of
from helmdash.records.models import Conversation, HealthChange, Round
from helmdash.records.statements.bulk import (
    insert_rows,
    update_rows,
    upsert_rows,
)

FIRST_ROUND: Final = 1


class ConversationBatch:
    """What the calls of one transaction change about their conversations."""

    def __init__(self, project_id: int) -> None:
        self._project_id = project_id
        self._touched: dict[int, ConversationRow] = {}
        self._rounds: dict[tuple[int, int], dict[str, object]] = {}
        self._new_rounds: set[tuple[int, int]] = set()
        self._begun: list[dict[str, object]] = []  # rounds of a clear that get their first call
        self._earlier: dict[int, datetime] = {}  # when first rounds may have begun, told late
        self._changes: list[dict[str, object]] = []
        self._corrections: dict[tuple[int, int], dict[str, object]] = {}
        self._taken_over: set[tuple[int, int]] = set()  # generations that a later attempt has now

    def take(
        self,
        row: ConversationRow,
        item: Judged,
        *,
        opened_by: str = "",
        again: NewestStream | None = None,
    ) -> int | None:
        """Number the conversation's next call, with `opened_by` as the first of a new round, or as
        another attempt at the newest one (`again`); gives the number of its round, None: of
        none."""
        if again is None and is_history_of(row, item):
            self._take_history(row, item)
            return None
        if again is None and is_late_call(row, item):
            return self._take_late(row, item)
        stood = standing_of(row) if again is None else again.before
        step = take_call(
            ConversationState(
                round_number=row.round_number,
                generation=row.generation - (again is not None),
                level=stood.level,
                known_level=stood.known_level,
            ),
            item.health.level,
            # What a clear has opened is fresh already: its first call need not open another.
            opens_round=bool(opened_by) and not row.is_round_empty,
        )
        if step.is_change or (again is not None and row.level != stood.level.value):
            change: dict[str, object] = {
                "project_id": self._project_id,
                "conversation_id": row.id,
                "generation": step.after.generation,
                "from_level": step.from_level.value if step.from_level else "",
                "to_level": step.after.level.value,
                "at": item.started_at,
            }
            if again is None:
                self._changes.append(change)
            else:
                self._correct_change(change)
        before = row.round_number
        self._note_beginning(row, item, step.after.round_number)
        if again is not None:
            self._taken_over.add((row.id, row.generation))
            if row.cut_generation == again.generation:
                row.cut_generation = stood.cut_generation
        _apply(row, step.after, item)
        row.newest_stream = newest_stream(
            item, generation=row.generation, before=stood, is_attempt=again is not None
        )
        self._touched[row.id] = row
        # After side calls alone a clear may have opened a round already.
        if row.generation == 1 and not row.is_round_empty and again is None:
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

    def take_before(self, row: ConversationRow, item: Judged) -> int:
        """An attempt before the newest call, recorded after it: counted, and the conversation
        stands as it does; gives the number of its round."""
        _count(row, item)
        self._touched[row.id] = row
        return row.round_number

    def correct(
        self, row: ConversationRow, item: Judged, *, generation: int | None, is_stored: bool
    ) -> None:
        """Another door says better how large the prompt of a call was: where it is the newest one,
        its conversation stands by that. is_stored: the call was recorded before, generation is what
        it had then."""
        if generation is None or generation != row.generation:
            return
        if is_stored and (row.id, generation) in self._taken_over:
            return  # a later attempt of this transaction has the number
        health, before = item.health, rank_of(row)
        if health.level.value != row.level:
            self._correct_change(
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
        row.attention = rank_after(row.attention, before=before, now=rank_of(row))
        if row.attention:
            row.snoozed_until = row.snoozed_rank = None
        self._touched[row.id] = row
        self._extend_round(row, item, row.round_number)

    def _take_late(self, row: ConversationRow, item: Judged) -> int:
        """A call of the round before: it has a number, and says nothing about the open round."""
        row.generation += 1
        number = max(row.round_number - 1, 1)
        if item.capture.round_number is not None:
            number = max(min(item.capture.round_number, number), 1)
        self._note_beginning(row, item, number)
        _count(row, item)
        self._touched[row.id] = row
        self._extend_round(row, item, number)
        return number

    def _take_history(self, row: ConversationRow, item: Judged) -> None:
        """A call from before all that the conversation has: it has a number, and its conversation
        stands as it does."""
        row.generation += 1
        _count(row, item)
        self._touched[row.id] = row

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
        # In one order, so that two who begin the same ones cannot wait for each other.
        begun = sorted((row for row in rows if row.is_new), key=attrgetter("name"))
        insert_rows(Conversation, [row_values(row, CONVERSATION_COLUMNS) for row in begun])
        update_rows(
            Conversation,
            MOVING_COLUMNS,
            [row_values(row, (*MOVING_COLUMNS, "id")) for row in rows if not row.is_new],
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
        for conversation_id, at in self._earlier.items():
            self._write_beginning(conversation_id, at)
        insert_rows(HealthChange, self._changes)
        if self._corrections:
            self._write_corrections()

    def _correct_change(self, change: dict[str, object]) -> None:
        """What a call changed about the level is known better now."""
        key = (int(str(change["conversation_id"])), int(str(change["generation"])))
        first = self._corrections.setdefault(key, change)
        first["to_level"] = change["to_level"]

    def _write_corrections(self) -> None:
        unique = ("project_id", "conversation_id", "generation")
        rows = [self._corrections[key] for key in sorted(self._corrections)]
        upsert_rows(HealthChange, rows, unique=unique, update="to_level")
        # What leads back to the level before is no change any more.
        HealthChange.objects.filter(
            project_id=self._project_id,
            conversation_id__in={conversation_id for conversation_id, _ in self._corrections},
            from_level=F("to_level"),
        ).delete()

    def _note_beginning(self, row: ConversationRow, item: Judged, number: int) -> None:
        """Before the call is counted: whether the first round, stored before, began with it. Others
        begin with what opened them."""
        if number != FIRST_ROUND or row.is_new or item.started_at >= row.latest_at:
            return
        # Calls beside the conversation are of no round: without them it began with its first round.
        if item.started_at < row.started_at or row.side_calls or row.earlier_attempts:
            known = self._earlier.get(row.id, item.started_at)
            self._earlier[row.id] = min(known, item.started_at)

    def _write_beginning(self, conversation_id: int, at: datetime) -> None:
        Round.objects.filter(
            project_id=self._project_id,
            conversation_id=conversation_id,
            number=FIRST_ROUND,
            started_at__gt=at,
        ).update(started_at=at)

    def _open_round(self, row: ConversationRow, item: Judged, opened_by: str) -> None:
        values = self._round(row, row.round_number)
        values["first_generation"] = row.generation
        values["started_at"] = item.started_at
        values["opened_by"] = opened_by
        self._new_rounds.add((row.id, row.round_number))

    def _extend_round(self, row: ConversationRow, item: Judged, number: int) -> None:
        values = self._round(row, number)
        values["latest_generation"] = row.generation
        if (row.id, number) in self._new_rounds and number == FIRST_ROUND:
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


def _apply(row: ConversationRow, after: ConversationState, item: Judged) -> None:
    """Bring the conversation's row to where its newest call puts it."""
    health = item.health
    if row.round_number != after.round_number:
        # What was cut, and what care held, went with the round.
        row.cut_generation = row.held_level = None
    was_failing, was_cut = row.recent_failures > 0, row.cut_generation is not None
    row.round_number = after.round_number
    row.generation = after.generation
    _stand(row, item)
    row.known_level = after.known_level._value_ if after.known_level else ""
    _name_model(row, item)
    row.recent_failures = with_newest(row.recent_failures, is_failed=item.cause is not None)
    row.latest_cause = item.cause.name.value if item.cause else None
    row.client_refusal = None  # it goes on
    if health.reason is HealthReason.SUSPECTED_CUT:
        row.cut_generation = row.generation
    row.attention = rank_of(row)
    if row.snoozed_until is not None:
        is_worse = row.attention > (row.snoozed_rank or 0)
        # A full one that begins to fail ranks no higher, and who snoozed it has not seen that.
        is_other = (row.recent_failures and not was_failing) or (row.cut_generation and not was_cut)
        if is_worse or is_other or item.started_at >= row.snoozed_until:
            row.snoozed_until = row.snoozed_rank = None  # news
        else:
            row.attention = 0
    _count(row, item)


def _stand(row: ConversationRow, item: Judged) -> None:
    """How full it is, by its newest call."""
    health = item.health
    # The texts of words: their `value` is a property written in Python.
    row.level = health.level._value_
    row.severity = LEVELS[health.level].severity
    row.level_reason = health.reason.value if health.reason else ""
    row.prompt_tokens = health.prompt_tokens
    row.limit_tokens = health.limit_tokens
    row.limit_source = health.limit_source._value_ if health.limit_source else ""
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
