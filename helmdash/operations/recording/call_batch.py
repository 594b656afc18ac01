"""The calls of one transaction with their places and rows: taken one by one, written at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from helmdash.answers import JsonName
from helmdash.core.agents.contexts import COMPACTED
from helmdash.core.budgets.health import Health
from helmdash.core.calls.failures import Cause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.joining import may_join, session_name
from helmdash.core.rules import CALL_RULES
from helmdash.core.text.redaction import Masker
from helmdash.core.values import quick_value
from helmdash.operations.database import rule_sets
from helmdash.operations.exporting import outbox
from helmdash.operations.recording import call_rows
from helmdash.operations.recording.call_rows import Placed
from helmdash.operations.recording.client_compactions import ClientCompactions
from helmdash.operations.recording.conversation_batch import ConversationBatch
from helmdash.operations.recording.conversation_rows import (
    ConversationRow,
    is_unused,
)
from helmdash.operations.recording.inference import Inference
from helmdash.operations.recording.joining import Joining, KnownCall, KnownCalls
from helmdash.operations.recording.judged.judging import Judged
from helmdash.operations.recording.judged.masking import masker
from helmdash.operations.recording.message_keys import MessageKeys, find_seen
from helmdash.operations.recording.repeated_streams import RepeatedStreams, counted_on
from helmdash.operations.recording.truncation import Cutting
from helmdash.operations.rollups.noting import note, note_recorded
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.keyed_hash import hash_text
from helmdash.records.call_names import (
    add_names,
    insert_names,
    reply_name,
)
from helmdash.records.models import Call, CallPayload, Payload, StoredMessage, TrialCall
from helmdash.records.statements import partitions
from helmdash.records.statements.bulk import (
    allocate_ids,
    insert_rows,
    sent_together,
    upsert_rows,
)


@quick_value(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The response to a recorded call; the same for every repeat of its id."""

    id: str
    conversation: str | None
    round_number: Annotated[int | None, JsonName("round")]
    generation: int | None
    health: Health
    finish_reason: FinishReason | None
    cause: Cause | None
    duplicate: bool


# So many calls go to the database at once while those behind them are placed, which takes as long
# as to store them: a batch of a hundred takes 15.5 ms instead of 17.6 (of the calls alone, without
# what is beside them).
_SENT_AT_ONCE = 25


def _kept_cause(cause: Cause | None, row: Mapping[str, object]) -> Cause | None:
    """The cause as its row has it, masked: so a repeat will be told it, and a client may log it."""
    return None if cause is None else replace(cause, detail=str(row["cause_detail"]))


class SentTooEarly(Exception):
    """A call that was sent already turns out to be another one: to be begun anew, with none sent
    before all are placed."""


class CallBatch:
    """The rows of one transaction, collected call by call and written at once."""

    def __init__(
        self,
        project: ProjectInfo,
        conversations: dict[str, ConversationRow],
        inference: Inference,
        cutting: Cutting,
        keys: MessageKeys,
        known: KnownCalls[Recorded],
        now: datetime,
    ) -> None:
        self._known = known
        self._joining = Joining(project.id, known)
        self._project = project
        self._conversations = conversations
        self._inference = inference
        self._cutting = cutting
        self._keys = keys
        self._now = now
        self._rules_id = rule_sets.keep(CALL_RULES)
        self._standings = ConversationBatch(project.id)
        self._compactions = ClientCompactions()
        self._repeated = RepeatedStreams()
        self._taken: list[tuple[Placed, Masker]] = []
        self._call_rows: list[dict[str, object]] = []
        # The rows beside those calls that are not sent yet, and of how many calls they are made.
        self._payloads: list[dict[str, object]] = []
        self._beside = 0
        # Messages by key: those that nobody has stored before and that are not sent yet, those that
        # are, and all others.
        self._new_messages: dict[str, object] = {}
        self._sent_messages: set[str] = set()
        self._messages: dict[str, object] = {}
        # Calls that are sent before all are placed: their numbers, how many are sent, and whether
        # there may be more.
        self._early_ids: Sequence[int] = ()
        self._sent = 0
        self._sends_early = False

    def send_early(self, told: ExitStack, items: Sequence[Judged]) -> None:
        """Let the database store the first calls while the others are placed; these are all, each
        a new one. From now on until `told` closes, what is told is told together.

        What takes a call's number or completes it, when it is sent, raises SentTooEarly.
        """
        if len(items) < 2 * _SENT_AT_ONCE:
            return
        self._early_ids, self._sends_early = allocate_ids(Call, len(items)), True
        if self._project.payload != Payload.OFF.value:
            self._keys.learn_ahead(self._will_have_messages(items))
        told.enter_context(sent_together(len(items), ends=True))

    def _will_have_messages(self, items: Sequence[Judged]) -> Iterator[ConversationRow]:
        """Of the conversations that are held. A call that names none may go on in any of those that
        were found by messages."""
        told = [item for item in items if item.message_hashes]
        for name in dict.fromkeys(item.capture.conversation or "" for item in told):
            if name in self._conversations:
                yield self._conversations[name]
        if any(map(is_nameless, told)):
            yield from self._inference.rows

    def take(self, item: Judged) -> Recorded:
        """Give the call its place and remember its rows."""
        placed = self._place(item)
        conversation = placed.conversation
        mask = masker(self._project)
        row = call_rows.call_row(
            placed,
            project_id=self._project.id,
            rules_id=self._rules_id,
            masker=mask,
            now=self._now,
        )
        self._call_rows.append(row)
        self._taken.append((placed, mask))
        if self._early_ids:
            row["id"] = self._early_ids[len(self._call_rows) - 1]
        if self._sends_early and len(self._call_rows) - self._sent >= _SENT_AT_ONCE:
            self._make_payloads()
            self._insert_calls()
            # No other writer has any of these: none waits for them.
            self._tell_messages(self._new_messages)
            self._cutting.leave_out(self._early_ids[: self._sent])
        answer = Recorded(
            id=item.capture.id or "",
            conversation=conversation.name if conversation else None,
            round_number=placed.round_number,
            generation=placed.attempt_of or placed.generation,
            health=placed.item.health,
            finish_reason=item.finish_reason,
            cause=_kept_cause(item.cause, row),
            duplicate=False,
        )
        self._known.add(item, answer, row)
        return answer

    def take_again(self, first: KnownCall[Recorded], item: Judged) -> None:
        """A call that is known already: what another door adds to it is remembered."""
        if self._early_ids:
            raise SentTooEarly
        if not may_join(first.routes, item.capture.routes):
            return
        row = call_rows.call_row(
            Placed(item=item),
            project_id=self._project.id,
            rules_id=self._rules_id,
            masker=masker(self._project),
            now=self._now,
        )
        self._joining.take(first, item, row)
        if is_nameless(item) or session_name(item.capture) is not None:
            held = self._row_of(first)
            if held is not None:
                self._go_on_in(held, first, item)

    def _row_of(self, first: KnownCall[Recorded]) -> ConversationRow | None:
        """The conversation of a call that is known, where this transaction holds it."""
        rows = [*self._conversations.values(), *self._inference.rows]
        if first.row is not None:
            pk = first.row["conversation_id"]
            return next((row for row in rows if row.id == pk), None)
        return next((row for row in rows if row.name == first.answer.conversation), None)

    def _go_on_in(self, row: ConversationRow, first: KnownCall[Recorded], item: Judged) -> None:
        """Let what comes after a call that is told of again go on in its conversation: by the
        messages that a gateway knows, and by the session that it does not."""
        links, name = item.capture.links, item.capture.conversation or ""
        number = first.answer.generation
        if links is not None and number is not None and is_nameless(item):
            self._inference.leave_later(row, item, links, generation=number)
        told = self._conversations.get(name)
        if told is not None and told is not row and is_unused(told):
            self._conversations[name] = row

    @property
    def items(self) -> Iterator[Judged]:
        """The calls taken, as their conversations let them be judged."""
        return (placed.item for placed, _ in self._taken)

    def prepare(self) -> None:
        """All that is asked and changed before `write`: what is only told need not wait for single
        answers."""
        if not self._call_rows:
            return
        ids = self._early_ids or allocate_ids(Call, len(self._call_rows))
        for row, pk in zip(self._call_rows, ids, strict=True):
            row["id"] = pk
        changes = self._joining.apply(self._held(), self._standings)
        note(self._project.id, changes, now=self._now)
        self._make_payloads()
        self._leave_out_seen()
        self._cutting.write()
        # A month that has no partition yet gets one by a transaction within this one.
        partitions.provide(item.started_at for item in self.items)

    def tell_together(self, told: ExitStack, *, ends: bool) -> None:
        """What `write` tells, and what else is told until `told` closes, is sent at once where that
        is of use (records.statements.bulk)."""
        # What is added to calls that are known is asked about as it comes.
        if self._call_rows and not self._early_ids:
            told.enter_context(sent_together(len(self._call_rows), ends=ends))

    def write(self) -> None:
        """Insert and update everything. Raises IntegrityError when another writer was first."""
        if not self._call_rows:
            self._write_joined()
            return
        self._standings.write()
        self._inference.write(self._now)
        self._repeated.write()
        insert_names(self._call_rows)
        # By which ids providers keep their replies. Of one that came before, the first call has it.
        add_names(
            (reply_name(reply_id, is_own=bool(item.capture.is_kept_by_own)), row)
            for row, item in zip(self._call_rows, self.items, strict=True)
            if (reply_id := item.capture.kept_reply_id)
        )
        self._known.write()
        self._insert_calls()
        insert_rows(TrialCall, self._trial_rows())
        self._tell_messages(self._new_messages | self._messages)
        exported = [*self._call_rows, *self._joining.completed]
        outbox.note_recorded(self._project.id, exported, now=self._now)
        # The one line by which recording and rollups know each other (ADR 32).
        note_recorded(
            self._project.id,
            self._call_rows,
            now=self._now,
            levels=self._standings.moved_levels(),
        )

    def _insert_calls(self) -> None:
        """Those that are not sent yet, and the rows beside them."""
        insert_rows(Call, self._call_rows[self._sent :])
        insert_rows(CallPayload, self._payloads)
        self._sent, self._payloads = len(self._call_rows), []

    def _tell_messages(self, messages: Mapping[str, object]) -> None:
        upsert_rows(
            StoredMessage,
            # In one order, so that two batches with common messages cannot wait for each other.
            [
                {
                    "project_id": self._project.id,
                    "hash": key,
                    "body": messages[key],
                    "latest_seen_at": self._now,
                }
                for key in sorted(messages)
            ],
            unique=("project_id", "hash"),
            update="latest_seen_at",
        )
        self._sent_messages.update(self._new_messages)
        self._new_messages = {}

    def _require_unsent(self, row: ConversationRow) -> None:
        """That the newest call of a conversation may still be changed."""
        newest = (row.id, row.generation)
        for call in self._call_rows[: self._sent]:
            if (call["conversation_id"], call["generation"]) == newest:
                raise SentTooEarly

    def _held(self) -> dict[int, ConversationRow]:
        return {row.id: row for row in self._conversations.values()}

    def _write_joined(self) -> None:
        """Where all calls are known: what other doors add to them."""
        held = self._held()
        changes = self._joining.apply(held, self._standings)
        self._inference.write(self._now)
        if changes:
            self._standings.write()
            self._known.write()
            levels = self._standings.moved_levels()
            note(self._project.id, changes, now=self._now, levels=levels)
            outbox.note_recorded(self._project.id, self._joining.completed, now=self._now)

    def _place(self, item: Judged) -> Placed:
        links = item.capture.links
        if links is not None and is_nameless(item):
            found = self._inference.place(item, links)
            earlier = self._take_before(found.row, item, found.placed_by)
            if earlier is not None:
                return earlier
            item, number = self._take_main(found.row, item, found.opened_by)
            self._inference.leave(found.row, item, links)
            self._compactions.note_main(found.row)
            return Placed(
                item=item,
                conversation=found.row,
                round_number=number,
                placed_by=found.placed_by,
                branched_from=found.branched_from,
            )
        row = self._conversations.get(item.capture.conversation or "")
        if item.is_side:
            # Its prompt is not the conversation's, by which the next ones are compared.
            item = self._cutting.judge(item, None, opens_round=False)
            if row is not None:
                self._standings.take_side(row, item)
                self._compactions.note_side(row, item)
            return Placed(item=item, conversation=row, placed_by="named" if row else "")
        if row is None:
            return Placed(item=self._cutting.judge(item, None, opens_round=False))
        earlier = self._take_before(row, item, "named")
        if earlier is not None:
            return earlier
        opened_by = self._compactions.opened_by(row, item)
        item, number = self._take_main(row, item, opened_by)
        how = COMPACTED if opened_by else "named"
        return Placed(item=item, conversation=row, round_number=number, placed_by=how)

    def _take_before(self, row: ConversationRow, item: Judged, placed_by: str) -> Placed | None:
        """The place of an attempt before the conversation's newest call, which is recorded after
        that; None: it is none."""
        after = self._repeated.find_after(row, item)
        if after is None:
            return None
        self._require_unsent(row)
        item = self._cutting.judge(item, None, opens_round=False)
        number = self._standings.take_before(row, item)
        self._repeated.take_before(row, item, after, self._call_rows)
        return Placed(
            item=item,
            conversation=row,
            round_number=number,
            placed_by=placed_by,
            attempt_of=row.generation,
        )

    def _take_main(
        self, row: ConversationRow, item: Judged, opened_by: str
    ) -> tuple[Judged, int | None]:
        """Number a call in its conversation. Gives it as judged there, and the number of its round;
        None: it is of none."""
        again = self._repeated.find(row, item)
        if again is not None:
            self._require_unsent(row)
            # From a stored attempt the number is taken in `write`: this one comes after that.
            self._sends_early = False
            item, opened_by = counted_on(item, again), ""
        item = self._cutting.judge(item, row, opens_round=bool(opened_by))
        number = self._standings.take(row, item, opened_by=opened_by, again=again)
        if again is not None:
            self._repeated.take(row, item, self._call_rows)
        return item, number

    def _trial_rows(self) -> list[dict[str, object]]:
        """Of the calls that were ruled in a trial; no statement where there are none."""
        return [
            {
                "call_number": row["id"],
                "project_id": self._project.id,
                "trial_id": item.trial.trial_id,
                "arm": item.trial.arm.value,
                # Keyed: who has a copy of the database cannot try names of conversations.
                "unit": hash_text(self._project.id, item.trial.unit),
                "started_at": item.started_at,
            }
            for row, item in zip(self._call_rows, self.items, strict=True)
            if item.trial is not None
        ]

    def _make_payloads(self) -> None:
        """The rows beside those calls that have none yet, and their messages."""
        taken, rows = self._taken[self._beside :], self._call_rows[self._beside :]
        self._beside = len(self._taken)
        kept = self._project.payload
        if kept != Payload.OFF.value:
            self._keys.learn(zip((placed for placed, _ in taken), rows, strict=True))
        messages: dict[str, object] = {}
        for (placed, mask), call in zip(taken, rows, strict=True):
            row = call_rows.payload_row(
                placed,
                project_id=self._project.id,
                call_id=call["id"],
                payload=kept,
                masker=mask,
                keys_of=self._keys.keys_of,
                messages=messages,
            )
            if row is not None:
                self._payloads.append(row)
        for key, message in messages.items():
            if key not in self._keys.made:
                self._messages[key] = message
            elif key not in self._sent_messages:
                self._new_messages[key] = message

    def _leave_out_seen(self) -> None:
        """Messages not seen lately are told; clients resend their history, so most have been."""
        if self._messages:
            for key in find_seen(self._project.id, [*self._messages], now=self._now):
                del self._messages[key]


def is_nameless(item: Judged) -> bool:
    """Whether the call says by its messages, and not by a name, which conversation it is of.

    A side call does not: its messages are its own.
    """
    links = item.capture.links
    is_told = bool(item.capture.conversation) or item.is_side
    return not is_told and links is not None and bool(links.head or links.after)
