"""The step before a chat call, and a fresh start for a request that does not fit."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from helmdash.core.calls.capture import Capture
from helmdash.core.care.restarts import Beginning, prompt_of
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.histories.history import history_of
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.remediation import steps
from helmdash.gateway.remediation.database import Database, StepUnavailable
from helmdash.gateway.remediation.due_steps import DueSteps
from helmdash.gateway.remediation.finding import concerned, links_of, who_asks
from helmdash.gateway.remediation.known_names import KnownNames
from helmdash.gateway.remediation.lengths import (
    expected_tokens,
    is_too_long,
    limit_tokens,
    spare_bytes,
)
from helmdash.gateway.remediation.recent_restarts import RecentRestarts
from helmdash.gateway.remediation.writing import bytes_of, written
from helmdash.gateway.remediation_state import CLEAR, NONE, RemediationState
from helmdash.operations import care
from helmdash.operations.recorder import Recorder
from helmdash.providers.protocols import ClientFormat

log = logging.getLogger(__name__)

# The call before this one may still be on its way to the database: a commit takes milliseconds.
_CATCH_UP_S = 1.0


class Remediator:
    """Remediates the conversations of calls, one for each process. Used on one event loop."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._database = Database()
        self._recent = RecentRestarts()
        self._names = KnownNames()
        self._due = DueSteps()

    def close(self) -> None:
        """End the threads; whatever waits is given up."""
        self._database.close()

    async def prepare(
        self, exchange: Exchange, client: ClientFormat, outgoing: OutgoingRequest
    ) -> OutgoingRequest:
        """Take the step that is due before a call, and give what is to be sent. Never raises."""
        if not _is_wanted(exchange):
            return outgoing
        history = history_of(exchange.route.client, outgoing, budget=exchange.budget)
        if history is None:
            return outgoing
        state = exchange.remediation = RemediationState(
            history=history,
            caller=who_asks(exchange),
            named=exchange.conversation or "",
            conversation=exchange.conversation,
        )
        try:
            return await self._prepared(exchange, client, state, outgoing)
        except Exception:
            log.exception("a call could not be remediated")
            return outgoing

    async def shorten(self, exchange: Exchange, client: ClientFormat) -> OutgoingRequest | None:
        """Start afresh because the request does not fit; None where that gains nothing.

        At most once for each call, and not after a clear: then there is nothing left to drop. What
        cannot be stored, for the conversation is not known yet or the database is away, holds for
        this call.
        """
        state = exchange.remediation
        if state is None or not state.may_shorten:
            return None
        state.may_shorten = False
        beginning = await self._fresh_start(exchange, state, size_bytes=len(exchange.outgoing.body))
        if beginning is None:
            return None
        state.action, state.countdown = CLEAR, None
        state.beginning = beginning
        self._recent.keep(state.key, state.history.entries, beginning)
        shorter = written(state.history, beginning, route=exchange.route, client=client)
        if len(shorter.body) >= len(exchange.outgoing.body):
            return None
        exchange.outgoing = shorter
        return shorter

    def note(self, exchange: Exchange, capture: Capture) -> None:
        """The call has ended: the next one goes on with the same conversation."""
        state = exchange.remediation
        if state is None:
            return
        if state.conversation is not None and not state.named:
            self._names.note(state.caller, capture.links, state.conversation)
        if state.is_watched:
            # The next step needs it: better stored while the agent is at work than waited for.
            self._recorder.hasten()

    async def _prepared(
        self,
        exchange: Exchange,
        client: ClientFormat,
        state: RemediationState,
        outgoing: OutgoingRequest,
    ) -> OutgoingRequest:
        step = await self._step(exchange, client, state)
        guide, newest = (None, None) if step is None else (step.guide, step.newest)
        sent = _rewritten(exchange, client, state, outgoing, guide=guide)
        has_words = guide or state.beginning.inserts
        if has_words and expected_tokens(exchange, sent, newest) > limit_tokens(exchange):
            # Our own words must not be what makes a request too long.
            state.beginning = replace(state.beginning, inserts=())
            state.action = NONE if state.action != CLEAR else CLEAR
            sent = _rewritten(exchange, client, state, outgoing)
        exchange.outgoing = sent
        if is_too_long(exchange, sent, newest):
            return await self.shorten(exchange, client) or sent
        return sent

    async def _step(
        self, exchange: Exchange, client: ClientFormat, state: RemediationState
    ) -> steps.Step | None:
        """Take the step; None for a conversation that nobody knows, and without a database."""
        try:
            step = await self._resting(exchange, client, state)
            if step is None:
                if self._database.is_asked:
                    newest = concerned(exchange, state.conversation)
                    await self._recorder.has_caught_up(newest, seconds=_CATCH_UP_S)
                step = await self._database.ask(partial(steps.next_step, exchange, client, state))
        except StepUnavailable:
            state.beginning = self._recent.find(state.key, state.history.entries)
            return None
        if step is None:
            return None
        if not step.is_resting:
            self._due.note(state.caller, step.conversation, is_over=step.action == CLEAR)
        state.conversation = step.conversation
        state.action, state.countdown = step.action, step.countdown
        state.round_number, state.generation = step.round_number, step.generation
        state.is_braked = step.is_braked
        state.is_watched = not step.is_resting
        state.beginning = step.beginning
        self._recent.keep(state.key, state.history.entries, step.beginning)
        return step

    async def _resting(
        self, exchange: Exchange, client: ClientFormat, state: RemediationState
    ) -> steps.Step | None:
        """The step where nothing is due, which most calls need no more than a look to tell; None:
        it has to be taken. Raises StepUnavailable."""
        if state.conversation is None:
            state.links = links_of(exchange)
            state.conversation = self._names.find(state.caller, state.links)
        if state.conversation is None or exchange.budget is None:
            return None
        if self._due.is_due(state.caller, state.conversation):
            state.conversation = state.named or None
            return None
        waiting = self._recorder.unstored(concerned(exchange, state.conversation))
        if waiting is None:
            return None
        step = await self._database.ask(
            partial(steps.resting_step, exchange, client, state, waiting)
        )
        if step is None:
            # Found by a guess at what goes on: the database has the last word.
            state.conversation = state.named or None
            return None
        if prompt_of(state.history.entries) is not None:
            self._database.later(partial(steps.keep_prompt, exchange, state.history, step))
        return step

    async def _fresh_start(
        self, exchange: Exchange, state: RemediationState, *, size_bytes: int
    ) -> Beginning | None:
        """What a request of so many bytes would begin with; None where it gains nothing, or
        remediation has stopped clearing."""
        history, bare = state.history, state.history.bare()
        if state.is_braked or state.action == CLEAR:
            return None
        if not history.is_dropping(before=state.beginning, after=bare):
            return None
        if bytes_of(history, bare) + spare_bytes(exchange) >= size_bytes:
            return None
        try:
            cleared = await self._database.ask(partial(steps.clear, exchange, state))
        except StepUnavailable:
            cleared = None
        except care.Braked:
            state.is_braked = True
            return None
        if cleared is not None:
            state.round_number = cleared.round_number
            beginning = history.beginning(cleared.restart)
            if beginning.entries:
                return beginning
        return history.rebuilt(round_number=state.round_number or 1)


def _is_wanted(exchange: Exchange) -> bool:
    """Whether this call's conversation is remediated: the header decides, else the project."""
    asked_for = exchange.options.remediation
    return exchange.key_context.caller.project.remediation if asked_for is None else asked_for


def _rewritten(
    exchange: Exchange,
    client: ClientFormat,
    state: RemediationState,
    outgoing: OutgoingRequest,
    *,
    guide: str | None = None,
) -> OutgoingRequest:
    """The request as it is sent: the client's own where nothing is left out or put in."""
    beginning = state.beginning
    if not (beginning.entries or beginning.inserts or guide):
        return outgoing
    return written(state.history, beginning, guide=guide, route=exchange.route, client=client)
