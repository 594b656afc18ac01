"""The step before a generation: nothing, a guidance, a recorded prompt, or a fresh start.

Source: "Context Health Monitor" (docs/sources.md). The rules are in core.care.remediation; here
they are given what is stored, under the conversation's lock, and what they decide is stored in the
same transaction. A generation is decided once: whoever asks again gets the first answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.care import remediation
from helmdash.core.care.remediation import CareAction, Decision
from helmdash.core.conversations.repeated_streams import NewestStream, StreamRequest, is_again
from helmdash.core.rules import CARE_RULES
from helmdash.operations.care import pending_prompts
from helmdash.operations.care.clearing import (
    REASON_CHARS,
    Clearing,
    anchor,
    is_braked,
    restart_of_locked,
    start_over,
    stored_package,
)
from helmdash.operations.care.guidance_texts import text_of
from helmdash.operations.care.locked_conversation import LockedConversation, Reading, lock, read
from helmdash.operations.care.problems import CareProblem
from helmdash.operations.care.values import Advanced, ClientHistory, Fits, Restart, SentBytes
from helmdash.operations.database import rule_sets
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Guidance
from helmdash.records.statements.steps import store_guidance

# A slip of the pen far ahead would be the newest for ever, and nothing after it be decided.
_MOST_AHEAD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One question, with the budgets it is answered by."""

    project: ProjectInfo
    conversation: str
    generation: int | None
    has_user_prompt: bool
    user_prompt: str | None
    model: str | None
    client: ClientHistory | None
    sent_bytes: SentBytes | None
    fits: Fits | None
    stream: StreamRequest | None
    rules: BudgetTable
    now: datetime


def advance(
    *,
    project: ProjectInfo,
    conversation: str,
    generation: int | None = None,
    has_user_prompt: bool = False,
    user_prompt: str | None = None,
    model: str | None = None,
    client: ClientHistory | None = None,
    sent_bytes: SentBytes | None = None,
    fits: Fits | None = None,
    stream: StreamRequest | None = None,
    now: datetime,
) -> Advanced:
    """Say what to do before a generation starts; each generation is counted once.

    generation: None is the last recorded one + 1 (or the caller's own newest + 1). user_prompt: the
    user's text that comes with it; it is kept, sealed, until a reply has answered it, and carried
    over a clear unchanged. model: the one about to be asked (None: as before), by the name its
    budget goes by; the budget of now is what counts. client: the history of a gateway's client.
    sent_bytes: gives the size of the request about to be sent, without images; one that is far
    smaller than what was refused as too long is not cleared for that. fits: tells whether a text
    has room in it; a guidance that has none does not count as given. stream: the request, where it
    asks for one: asked for again, it gets the answer of the newest generation. A conversation
    nobody knows is in round 1 and needs nothing. Raises CareProblem for a generation that cannot be
    the next.
    """
    request = _Request(
        project=project,
        conversation=conversation,
        generation=generation,
        has_user_prompt=has_user_prompt or bool(user_prompt),
        user_prompt=user_prompt or None,
        model=model,
        client=client,
        sent_bytes=sent_bytes,
        fits=fits,
        stream=stream,
        rules=budgets.table(project_id=project.id),
        now=now,
    )
    return write(lambda: _advance(request))


def keep_prompt(
    *, project: ProjectInfo, conversation: str, generation: int, text: str, now: datetime
) -> None:
    """Keep the user's text that comes with a generation, where no step is to be taken before it.

    Sealed, until a reply has answered it; `advance` does the same for those it decides.
    """

    def work() -> None:
        locked = lock(project.id, conversation)
        if locked is not None:
            pending_prompts.forget_answered(locked.row, first=locked.first_waiting)
        pending_prompts.keep(
            project_id=project.id,
            conversation=conversation if locked is None else locked.row.name,
            generation=generation,
            # Nobody's count but ours: the answer is this generation's, or a later one's.
            recorded=generation - 1,
            text=text,
            now=now,
        )

    write(work)


def _advance(request: _Request) -> Advanced:
    locked = lock(request.project.id, request.conversation)
    recorded = locked.row.generation if locked else 0
    if request.generation is not None and request.generation > recorded + _MOST_AHEAD:
        raise CareProblem(
            "generation",
            f"this conversation has {recorded:,} recorded calls; name the one about to start, "
            "or leave it out",
        )
    if locked is None:
        generation = request.generation or 1
        _keep_text(request, generation, recorded)
        return _nothing(generation, 1, "No call of this conversation is known yet.")
    request = _of(request, locked.row.name)
    again = _attempted(request, locked)
    generation = request.generation or again or locked.next_generation
    if request.client is not None:
        anchor(locked, request.client)
    pending_prompts.forget_answered(locked.row, first=locked.first_waiting)
    _keep_text(request, generation, recorded)
    if generation <= locked.state.generation:
        return _repeat(request, locked, generation)
    if again is not None:
        # Nothing was due before its first attempt, for that a look was enough.
        reason = f"Generation {generation} is asked for once more."
        restart = _restart(request, locked)
        return _nothing(
            generation, locked.row.round_number, reason, is_repeat=True, restart=restart
        )
    reading = read(
        locked, request.rules, model=request.model, sent_bytes=_sent_bytes(request, locked)
    )
    state, decision = remediation.advance(
        locked.state,
        generation=generation,
        snapshot=reading.snapshot,
        cadence=reading.budget.caution_cadence,
        has_user_prompt=request.has_user_prompt,
    )
    if decision.action is CareAction.CLEAR:
        if not is_braked(locked, request.client):
            return _clear(request, locked, reading, decision, generation)
        state, decision = remediation.brake(state, has_user_prompt=request.has_user_prompt)
    text = text_of(decision, locked, reading, generation=generation)
    if text and not _has_room(request, locked, reading, text):
        state, decision = remediation.untold(locked.state, state, decision)
        text = ""
    locked.save(state, cadence=reading.budget.caution_cadence, recorded=recorded)
    return _give(request, locked, reading, decision, generation, text)


def _of(request: _Request, name: str) -> _Request:
    """The question by what the conversation is called now, and by the budgets that rule that."""
    return replace(request, conversation=name, rules=request.rules.for_conversation(name))


def _attempted(request: _Request, locked: LockedConversation) -> int | None:
    """The generation that this request is another attempt at; None: it is a further one."""
    if request.stream is None or request.generation is not None:
        return None
    recorded = locked.row.generation
    newest = NewestStream.from_json(locked.row.newest_stream)
    if not is_again(newest, request.stream, generation=recorded):
        return None
    # A caller that numbers its own has decided it under its own number.
    return max(recorded, locked.state.generation)


def _has_room(request: _Request, locked: LockedConversation, reading: Reading, text: str) -> bool:
    if request.fits is None or reading.newest is None:
        return True
    return request.fits(_restart(request, locked), len(text.encode()), reading.newest)


def _sent_bytes(request: _Request, locked: LockedConversation) -> Callable[[], int] | None:
    told = request.sent_bytes
    return None if told is None else lambda: told(_restart(request, locked))


def _keep_text(request: _Request, generation: int, recorded: int) -> None:
    if request.user_prompt is not None:
        pending_prompts.keep(
            project_id=request.project.id,
            conversation=request.conversation,
            generation=generation,
            recorded=recorded,
            text=request.user_prompt,
            now=request.now,
        )


def _give(
    request: _Request,
    locked: LockedConversation,
    reading: Reading,
    decision: Decision,
    generation: int,
    text: str,
) -> Advanced:
    if decision.action is not CareAction.NONE:
        _store(request, locked, decision, generation=generation, text=text)
    return Advanced(
        action=decision.action.value,
        strength=decision.strength.value if decision.strength else None,
        text=text or None,
        persist=decision.persist,
        remaining=decision.remaining,
        round_number=locked.row.round_number,
        generation=generation,
        reason=decision.reason,
        restart=_restart(request, locked),
        newest=reading.newest,
        is_braked=decision.is_brake,
        is_held=locked.is_held,
    )


def _store(
    request: _Request, locked: LockedConversation, decision: Decision, *, generation: int, text: str
) -> None:
    is_inserted = decision.action is CareAction.RECORD_PROMPT and request.client is not None
    store_guidance(
        {
            "project": request.project.id,
            "conversation": locked.row.pk,
            "generation": generation,
            "round_number": locked.row.round_number,
            "action": decision.action.value,
            "strength": decision.strength.value if decision.strength else "",
            "text": text,
            "remaining": decision.remaining,
            "reason": decision.reason[:REASON_CHARS],
            "position": request.client.messages if request.client and is_inserted else None,
            "at": request.now,
            "followed_at": None,
            "rules": rule_sets.keep(CARE_RULES),
        }
    )
    locked.has_inserts = locked.has_inserts or is_inserted


def _clear(
    request: _Request,
    locked: LockedConversation,
    reading: Reading,
    decision: Decision,
    generation: int,
) -> Advanced:
    package = start_over(
        locked,
        Clearing(
            budget=reading.budget,
            reason=decision.reason,
            client=request.client,
            generation=generation,
            asked_by=generation,
            by_itself=True,
            now=request.now,
        ),
    )
    return Advanced(
        action=decision.action.value,
        strength=None,
        text=None,
        persist=False,
        remaining=decision.remaining,
        round_number=locked.row.round_number,
        generation=generation,
        carry=pending_prompts.pending(locked.row),
        package=package,
        reason=decision.reason,
        restart=_restart(request, locked),
    )


def _repeat(request: _Request, locked: LockedConversation, generation: int) -> Advanced:
    """The first answer again. What was told in a round that is over holds no more, nor does a clear
    that was followed by a call."""
    row = locked.row
    is_braked_now = locked.state.braked_at is not None
    stored = Guidance.objects.filter(
        project_id=request.project.id, conversation=row, generation=generation
    ).first()
    restart = _restart(request, locked)
    if stored is not None and stored.action == CareAction.CLEAR.value:
        package, asked_by = stored_package(row, stored.round_number + 1)
        if asked_by == generation and row.is_round_empty:
            return Advanced(
                action=stored.action,
                strength=None,
                text=None,
                persist=False,
                remaining=stored.remaining,
                round_number=stored.round_number + 1,
                generation=generation,
                carry=pending_prompts.pending(row),
                package=package,
                is_repeat=True,
                reason=stored.reason,
                restart=restart,
            )
        stored = None
    if stored is None or stored.round_number != row.round_number:
        reason = f"Generation {generation} was decided already."
        return _nothing(generation, row.round_number, reason, is_repeat=True, restart=restart)
    return Advanced(
        action=stored.action,
        strength=stored.strength or None,
        text=stored.text or None,
        persist=stored.action == CareAction.RECORD_PROMPT.value,
        remaining=stored.remaining,
        round_number=row.round_number,
        generation=generation,
        is_repeat=True,
        reason=stored.reason,
        restart=restart,
        is_braked=is_braked_now,
        is_held=locked.is_held,
    )


def _nothing(
    generation: int,
    round_number: int,
    reason: str,
    *,
    is_repeat: bool = False,
    restart: Restart | None = None,
) -> Advanced:
    return Advanced(
        action=CareAction.NONE.value,
        strength=None,
        text=None,
        persist=False,
        remaining=None,
        round_number=round_number,
        generation=generation,
        is_repeat=is_repeat,
        reason=reason,
        restart=restart,
    )


def _restart(request: _Request, locked: LockedConversation) -> Restart | None:
    """Only a gateway asks for it: it alone rebuilds requests."""
    return restart_of_locked(locked, request.rules) if request.client is not None else None
