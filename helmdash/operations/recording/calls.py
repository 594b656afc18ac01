"""Recording calls: one transaction for a whole batch, safe among concurrent writers.

normalise (core.calls.usage, core.calls.finish) -> classify (core.calls.failures) -> level
(core.budgets.health) -> find the conversation (named, or by core.conversations.chains) -> suspect a
silent cut (core.truncation.detector) -> place in it (core.conversations.placement) -> rows. Returns
only after the commit, so that a 2xx means stored.

Concurrency (operations.database.transactions): on PostgreSQL the rows of the batch's conversations
are locked in one order before anything is numbered. Two writers that bring the same id at once meet
at a unique constraint; the later one starts again and finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.db import DatabaseError, OperationalError

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.joining import is_by_kind
from helmdash.operations.database.transactions import write
from helmdash.operations.ids import new_id
from helmdash.operations.recording.agent_ids import settle_agents
from helmdash.operations.recording.asking_ahead import ahead, asks_ahead
from helmdash.operations.recording.call_batch import (
    CallBatch,
    Recorded,
    SentTooEarly,
    is_nameless,
)
from helmdash.operations.recording.conversation_rows import (
    ConversationIds,
)
from helmdash.operations.recording.inference import Inference
from helmdash.operations.recording.joining import KnownCall, KnownCalls, names_of
from helmdash.operations.recording.judged.histories import Histories
from helmdash.operations.recording.judged.judging import Judged, judge
from helmdash.operations.recording.learned_windows import keep_windows, learned_from
from helmdash.operations.recording.message_keys import MessageKeys
from helmdash.operations.recording.named_conversations import (
    follow_sessions,
    lock_conversations,
    lock_told,
    most_begun,
)
from helmdash.operations.recording.truncation import Cutting
from helmdash.operations.recording.withdrawing import settle_nesting
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.calls.calls import view
from helmdash.records.call_names import (
    Place,
    calls_at,
    delete_names,
    find_places,
)
from helmdash.records.models import Call, Payload
from helmdash.records.statements import partitions


def record_calls(
    *,
    project: ProjectInfo,
    captures: Sequence[Capture],
    caller: str,
    now: datetime,
    before: Callable[[], None] | None = None,
    also: Callable[[tuple[Recorded, ...]], None] | None = None,
) -> tuple[Recorded, ...]:
    """Store calls, in order, and answer each with its place and verdicts.

    before, also: what is to be written in the same transaction, first and last, once the answers
    are known (None: nothing); it runs anew with every new start. Where calls are few `also` is sent
    with them, and is to read no answer (records.statements.bulk).

    A capture whose id the project knows already is answered with the first answer and
    `duplicate=True`, whatever it says now. Raises what the database raises when it is unavailable.
    """
    named = [_named(capture, now) for capture in captures]
    is_ahead = asks_ahead(len(named))
    known = budgets.newest_known(project_id=project.id) if is_ahead else None
    rules = known or budgets.table(project_id=project.id)
    judged = _judged_by(rules, project, named, caller=caller, now=now)

    def store(
        *, is_ahead: bool, is_early: bool
    ) -> tuple[tuple[Recorded, ...], Cutting, MessageKeys]:
        cutting, keys = Cutting(project.id), MessageKeys(project.id, now)
        if before is not None:
            before()
        newest, items = rules, judged
        with ExitStack() as told:
            with ahead(project, judged, keys, now=now) if is_ahead else nullcontext():
                if known is not None:
                    newest = budgets.table(project_id=project.id)
                if newest is not rules:  # budgets were edited since
                    items = _judged_by(newest, project, named, caller=caller, now=now)
                early = told if is_ahead and is_early else None
                batch, answers = _record(project, items, newest, cutting, keys, now, early)
            batch.tell_together(told, ends=is_ahead)
            batch.write()
            # Behind the conversations: who waits to begin one is not to hold a row of these.
            keep_windows(project_id=project.id, items=batch.items, rules=newest, now=now)
            if also is not None and is_ahead:
                also(answers)
        if also is not None and not is_ahead:
            also(answers)
        return answers, cutting, keys

    for months in partitions.new_months(item.started_at for item in judged):
        write(partial(partitions.make, months))
    try:
        try:
            answers, cutting, keys = write(partial(store, is_ahead=is_ahead, is_early=True))
        except SentTooEarly:
            answers, cutting, keys = write(partial(store, is_ahead=is_ahead, is_early=False))
    except DatabaseError as error:
        if not is_ahead or isinstance(error, OperationalError):
            raise
        # What is sent together fails together: one by one only what must fail does.
        answers, cutting, keys = write(partial(store, is_ahead=False, is_early=False))
    cutting.keep()
    keys.keep()
    return answers


def _judged_by(
    rules: BudgetTable,
    project: ProjectInfo,
    captures: Sequence[Capture],
    *,
    caller: str,
    now: datetime,
) -> list[Judged]:
    """In order, each by what those before it have taught (operations.recording.learned_windows)."""
    keeps_texts, histories = project.payload != Payload.OFF.value, Histories()
    judged: list[Judged] = []
    for turn, capture in enumerate(captures):
        item = judge(
            capture,
            rules,
            caller=caller,
            now=now,
            keeps_texts=keeps_texts,
            histories=histories,
        )
        judged.append(item)
        if taught := tuple(learned_from(item, rules, now, turn=turn)):
            rules = rules.with_windows(taught)
    return judged


def _record(
    project: ProjectInfo,
    judged: Sequence[Judged],
    rules: BudgetTable,
    cutting: Cutting,
    keys: MessageKeys,
    now: datetime,
    early: ExitStack | None,
) -> tuple[CallBatch, tuple[Recorded, ...]]:
    """The calls in their places, with their rows, which wait to be written.

    early: where what is told together ends, if calls may be sent while others are placed; None:
    they may not.
    """
    judged, around = settle_nesting(project.id, judged, rules, now=now)
    moved = settle_agents(project.id, judged, rules, now=now)
    judged = [*moved, *judged]
    ids = ConversationIds(most_begun(judged))
    conversations = lock_conversations(project.id, judged, ids)
    names = [name for item in judged for name in names_of(item)]
    known = KnownCalls(_known_calls(project.id, names))
    follow_sessions(project.id, judged, conversations, partial(_stored_in, known))
    nameless = [item for item in judged if is_nameless(item)]
    told = [name for item in nameless if (name := _stored_in(known, item)) is not None]
    lock_told(project.id, told, conversations)
    fresh = [item for item in nameless if known.find(item) is None]
    inference = Inference(project.id, fresh, named=conversations.values(), ids=ids)
    writer = CallBatch(project, conversations, inference, cutting, keys, known, now)
    if early is not None and not moved and known.has_none and len(set(names)) == len(names):
        # No call tells of another one again, so a row is as it will be once it is made.
        writer.send_early(early, judged)
    answers: dict[int, Recorded] = {}
    for at, item in _in_order(judged, around, len(moved)):
        first = known.find(item)
        if first is None:
            answers[at] = writer.take(item)
        else:
            writer.take_again(first, item)
            answers[at] = replace(first.answer, id=item.capture.id or "", duplicate=True)
    writer.prepare()
    return writer, tuple(answers[at] for at in range(len(moved), len(judged)))


def _in_order(
    judged: Sequence[Judged], around: Collection[str], moved: int
) -> Iterable[tuple[int, Judged]]:
    """Calls that others of these lie in come last: by then their ids lead to those. What names its
    sub-agent by an id comes before what knows its kind alone. moved: so many are first anyway."""
    is_late = [at >= moved and is_by_kind(item.capture) for at, item in enumerate(judged)]
    if not around and True not in is_late:
        return enumerate(judged)
    return sorted(
        enumerate(judged), key=lambda each: (each[1].capture.id in around, is_late[each[0]])
    )


def _stored_in(known: KnownCalls[Recorded], item: Judged) -> str | None:
    """The conversation of the stored call that an item tells of again; None: there is none."""
    first = known.find(item)
    return first.answer.conversation if first is not None and first.place is not None else None


def _known_calls(project_id: int, names: Sequence[str]) -> dict[str, KnownCall[Recorded]]:
    """The calls that have these names already; most batches hold none."""
    places = find_places(project_id, names)
    if not places:
        return {}
    rows = calls_at(project_id, places.values()).select_related("conversation")
    known = {
        row.pk: KnownCall(
            answer=_first_answer(row),
            routes=row.routes,
            started_at=row.started_at,
            place=Place(row.pk, row.started_at),
        )
        for row in rows
    }
    # A name may outlive its call by a little, and is free then.
    gone = {name: at for name, at in places.items() if at.call_id not in known}
    delete_names(project_id, gone)
    return {name: known[at.call_id] for name, at in places.items() if at.call_id in known}


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
    return replace(capture, id=new_id("call", now))
