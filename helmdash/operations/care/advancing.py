"""The step before a generation: nothing, a guidance, a recorded prompt, or a fresh start.

Source: "Context Health Monitor" (docs/sources.md). The rules are in core.care.remediation; here
they are given what is stored, under the conversation's lock, and what they decide is stored in the
same transaction. A generation is decided once: whoever asks again gets the first answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from helmdash.core.budgets.budgets import BudgetTable
from helmdash.core.care import remediation
from helmdash.core.care.remediation import CareAction, Decision
from helmdash.core.rules import CARE_RULES
from helmdash.operations.care import pending_prompts
from helmdash.operations.care.clearing import (
    REASON_CHARS,
    Clearing,
    anchor,
    is_braked,
    restart_of_standing,
    start_over,
    stored_package,
)
from helmdash.operations.care.guidance_texts import text_of
from helmdash.operations.care.locked_conversation import Reading, Standing, lock, read
from helmdash.operations.care.problems import CareProblem
from helmdash.operations.care.values import Advanced, ClientHistory, Fits, Restart, SentBytes
from helmdash.operations.database import rule_sets
from helmdash.operations.database.transactions import write
from helmdash.queries import budgets
from helmdash.queries.access import ProjectInfo
from helmdash.records.models import Guidance
from helmdash.records.steps import store_guidance

# A slip of the pen far ahead would be the newest for ever, and nothing after it be decided.
_MOST_AHEAD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
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
    now: datetime,
) -> Advanced:
    """Say what to do before a generation starts; each generation is counted once.

    generation: None is the last recorded one + 1 (or the caller's own newest + 1). user_prompt: the
    user's text that comes with it; it is kept, sealed, until a reply has answered it, and carried
    over a clear unchanged. model: the one about to be asked (None: as before), by the name its
    budget goes by; the budget of now is what counts. client: the history of a gateway's client.
    sent_bytes: gives the size of the request about to be sent, without images; one that is far
    smaller than what was refused as too long is not cleared for that. fits: tells whether a text
    has room in it; a guidance that has none does not count as given. A conversation nobody knows
    is in round 1 and needs nothing. Raises CareProblem for a generation that cannot be the next.
    """
    asked = _Asked(
        project=project,
        conversation=conversation,
        generation=generation,
        has_user_prompt=has_user_prompt or bool(user_prompt),
        user_prompt=user_prompt or None,
        model=model,
        client=client,
        sent_bytes=sent_bytes,
        fits=fits,
        rules=budgets.table(project_id=project.id),
        now=now,
    )
    return write(lambda: _advance(asked))


def keep_prompt(
    *, project: ProjectInfo, conversation: str, generation: int, text: str, now: datetime
) -> None:
    """Keep the user's text that comes with a generation, where no step is to be taken before it.

    Sealed, until a reply has answered it; `advance` does the same for those it decides.
    """

    def work() -> None:
        standing = lock(project.id, conversation)
        if standing is not None:
            pending_prompts.forget_answered(standing.row, first=standing.first_waiting)
        pending_prompts.keep(
            project_id=project.id,
            conversation=conversation,
            generation=generation,
            # Nobody's count but ours: the answer is this generation's, or a later one's.
            recorded=generation - 1,
            text=text,
            now=now,
        )

    write(work)


def _advance(asked: _Asked) -> Advanced:
    standing = lock(asked.project.id, asked.conversation)
    recorded = standing.row.generation if standing else 0
    if asked.generation is not None and asked.generation > recorded + _MOST_AHEAD:
        raise CareProblem(
            "generation",
            f"this conversation has {recorded:,} recorded calls; name the one about to start, "
            "or leave it out",
        )
    if standing is None:
        generation = asked.generation or 1
        _keep_text(asked, generation, recorded)
        return _nothing(generation, 1, "No call of this conversation is known yet.")
    generation = asked.generation or standing.next_generation
    if asked.client is not None:
        anchor(standing, asked.client)
    pending_prompts.forget_answered(standing.row, first=standing.first_waiting)
    _keep_text(asked, generation, recorded)
    if generation <= standing.state.generation:
        return _repeat(asked, standing, generation)
    reading = read(
        standing, asked.rules, model=asked.model, sent_bytes=_sent_bytes(asked, standing)
    )
    state, decision = remediation.advance(
        standing.state,
        generation=generation,
        snapshot=reading.snapshot,
        cadence=reading.budget.caution_cadence,
        has_user_prompt=asked.has_user_prompt,
    )
    if decision.action is CareAction.CLEAR:
        if not is_braked(standing, asked.client):
            return _clear(asked, standing, reading, decision, generation)
        state, decision = remediation.brake(state, has_user_prompt=asked.has_user_prompt)
    text = text_of(decision, standing, reading, generation=generation)
    if text and not _has_room(asked, standing, reading, text):
        state, decision = remediation.untold(standing.state, state, decision)
        text = ""
    standing.save(state, cadence=reading.budget.caution_cadence, recorded=recorded)
    return _give(asked, standing, reading, decision, generation, text)


def _has_room(asked: _Asked, standing: Standing, reading: Reading, text: str) -> bool:
    if asked.fits is None or reading.newest is None:
        return True
    return asked.fits(_restart(asked, standing), len(text.encode()), reading.newest)


def _sent_bytes(asked: _Asked, standing: Standing) -> Callable[[], int] | None:
    told = asked.sent_bytes
    return None if told is None else lambda: told(_restart(asked, standing))


def _keep_text(asked: _Asked, generation: int, recorded: int) -> None:
    if asked.user_prompt is not None:
        pending_prompts.keep(
            project_id=asked.project.id,
            conversation=asked.conversation,
            generation=generation,
            recorded=recorded,
            text=asked.user_prompt,
            now=asked.now,
        )


def _give(
    asked: _Asked,
    standing: Standing,
    reading: Reading,
    decision: Decision,
    generation: int,
    text: str,
) -> Advanced:
    if decision.action is not CareAction.NONE:
        _store(asked, standing, decision, generation=generation, text=text)
    return Advanced(
        action=decision.action.value,
        strength=decision.strength.value if decision.strength else None,
        text=text or None,
        persist=decision.persist,
        remaining=decision.remaining,
        round_number=standing.row.round_number,
        generation=generation,
        reason=decision.reason,
        restart=_restart(asked, standing),
        newest=reading.newest,
        is_braked=decision.is_brake,
    )


def _store(
    asked: _Asked, standing: Standing, decision: Decision, *, generation: int, text: str
) -> None:
    is_inserted = decision.action is CareAction.RECORD_PROMPT and asked.client is not None
    store_guidance(
        {
            "project": asked.project.id,
            "conversation": standing.row.pk,
            "generation": generation,
            "round_number": standing.row.round_number,
            "action": decision.action.value,
            "strength": decision.strength.value if decision.strength else "",
            "text": text,
            "remaining": decision.remaining,
            "reason": decision.reason[:REASON_CHARS],
            "position": asked.client.messages if asked.client and is_inserted else None,
            "at": asked.now,
            "followed_at": None,
            "rules": rule_sets.keep(CARE_RULES),
        }
    )
    standing.has_inserts = standing.has_inserts or is_inserted


def _clear(
    asked: _Asked, standing: Standing, reading: Reading, decision: Decision, generation: int
) -> Advanced:
    package = start_over(
        standing,
        Clearing(
            budget=reading.budget,
            reason=decision.reason,
            client=asked.client,
            generation=generation,
            asked_by=generation,
            by_itself=True,
            now=asked.now,
        ),
    )
    return Advanced(
        action=decision.action.value,
        strength=None,
        text=None,
        persist=False,
        remaining=decision.remaining,
        round_number=standing.row.round_number,
        generation=generation,
        carry=pending_prompts.pending(standing.row),
        package=package,
        reason=decision.reason,
        restart=_restart(asked, standing),
    )


def _repeat(asked: _Asked, standing: Standing, generation: int) -> Advanced:
    """The first answer again. What was told in a round that is over holds no more, nor does a clear
    that was followed by a call."""
    row = standing.row
    is_braked_now = standing.state.braked_at is not None
    stored = Guidance.objects.filter(
        project_id=asked.project.id, conversation=row, generation=generation
    ).first()
    restart = _restart(asked, standing)
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


def _restart(asked: _Asked, standing: Standing) -> Restart | None:
    """Only a gateway asks for it: it alone rebuilds requests."""
    return restart_of_standing(standing, asked.rules) if asked.client is not None else None
