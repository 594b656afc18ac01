"""Remediation's step before a call. All of this runs in a thread that has a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from helmdash.core.calls.capture import Capture
from helmdash.core.care.restarts import Beginning, prompt_of
from helmdash.gateway.histories.history import History
from helmdash.gateway.remediation.finding import stream_of, unnamed_conversation
from helmdash.gateway.remediation.lengths import limit_tokens
from helmdash.gateway.remediation.writing import written
from helmdash.gateway.remediation_state import CLEAR, GUIDE, NONE, RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations import care
from helmdash.providers.protocols import ClientFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be done with a call.

    countdown: generations left before a fresh start; None: none is due. guide: our words for this
    call only. newest: the reading of the call before; None: there is none in this round. is_held:
    the next call takes a step as well. is_resting: a look was enough.
    """

    conversation: str
    action: str
    countdown: int | None
    round_number: int
    generation: int
    beginning: Beginning
    guide: str | None
    newest: care.Newest | None
    is_braked: bool = False
    is_held: bool = False
    is_resting: bool = False


def resting_step(
    exchange: Exchange, client: ClientFormat, state: RemediationState, waiting: Sequence[Capture]
) -> Step | None:
    """The step where nothing is due; None: it has to be taken.

    waiting: the conversation's calls that are not stored yet.
    """
    assert exchange.budget is not None
    assert state.conversation is not None
    found = care.peek(
        project_id=exchange.key_context.caller.project.id,
        conversation=state.conversation,
        budget=exchange.budget,
        model=exchange.budget_model or exchange.model,
        sent_bytes=lambda restart: _text_bytes(exchange, client, state.history, restart),
        waiting=waiting,
        stream=stream_of(exchange, state.links),
    )
    if found is None:
        return None
    return Step(
        conversation=state.conversation,
        action=NONE,
        countdown=None,
        round_number=found.round_number,
        generation=found.generation,
        beginning=state.history.beginning(found.restart),
        guide=None,
        newest=found.newest,
        is_resting=True,
    )


def next_step(exchange: Exchange, client: ClientFormat, state: RemediationState) -> Step | None:
    """Take the step that is due; None for a conversation that has only just begun."""
    history = state.history
    name = state.conversation or unnamed_conversation(exchange, state.links, history)
    if name is None:
        return None
    for_clear = history.for_clear()
    prompt = prompt_of(history.entries)
    done = care.advance(
        project=exchange.key_context.caller.project,
        conversation=name,
        has_user_prompt=prompt is not None,
        user_prompt=None if prompt is None else history.entries[prompt].text,
        model=exchange.budget_model or exchange.model,
        client=for_clear,
        sent_bytes=lambda restart: _text_bytes(exchange, client, history, restart),
        fits=lambda restart, size, newest: (
            newest.model != exchange.model
            or newest.tokens_of(_text_bytes(exchange, client, history, restart) + size)
            <= limit_tokens(exchange)
        ),
        stream=stream_of(exchange, state.links),
        now=datetime.now(UTC),
    )
    beginning = history.beginning(done.restart)
    if done.persist and done.text and not _has(beginning, done.text):
        inserts = (*beginning.inserts, (for_clear.messages, done.text))
        beginning = replace(beginning, inserts=inserts)
    return Step(
        conversation=name,
        action=str(done.action),
        countdown=None if done.action == CLEAR else done.remaining,
        round_number=done.round_number,
        generation=done.generation,
        beginning=beginning,
        guide=done.text if done.action == GUIDE and not done.persist else None,
        newest=done.newest,
        is_braked=done.is_braked,
        is_held=done.is_held,
    )


def keep_prompt(exchange: Exchange, history: History, step: Step) -> None:
    """Note the user's text that a call brought: a clear from elsewhere is to carry it."""
    prompt = prompt_of(history.entries)
    if prompt is not None and (text := history.entries[prompt].text):
        care.keep_prompt(
            project=exchange.key_context.caller.project,
            conversation=step.conversation,
            generation=step.generation,
            text=text,
            now=datetime.now(UTC),
        )


def clear(exchange: Exchange, state: RemediationState) -> care.Cleared | None:
    """A fresh start because the request is too long; None for a conversation that nobody knows.

    Raises care.Braked where remediation has stopped clearing.
    """
    if state.conversation is None:
        return None
    caller = exchange.key_context.caller
    try:
        return care.clear(
            actor=caller.actor,
            project=caller.project,
            conversation=state.conversation,
            reason="The request was longer than its model takes.",
            by_itself=True,
            client=state.history.for_clear(),
            generation=state.generation,
            model=exchange.budget_model or exchange.model,
            now=datetime.now(UTC),
        )
    except care.NoConversation:
        return None


def _text_bytes(
    exchange: Exchange, client: ClientFormat, history: History, restart: care.Restart | None
) -> int:
    """The bytes that would be sent, as the record counts them: without images."""
    beginning = history.beginning(restart)
    if not (beginning.entries or beginning.inserts):
        return exchange.outgoing.text_bytes
    return written(history, beginning, route=exchange.route, client=client).text_bytes


def _has(beginning: Beginning, text: str) -> bool:
    return any(text == known for _, known in beginning.inserts)
