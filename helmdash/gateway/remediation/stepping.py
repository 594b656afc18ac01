"""The step before a call: a look where nothing is due, else the step itself, in a thread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from helmdash.core.calls.capture import Capture
from helmdash.core.care.restarts import prompt_of
from helmdash.gateway.remediation import steps
from helmdash.gateway.remediation.database import Database, StepUnavailable
from helmdash.gateway.remediation.due_steps import DueSteps
from helmdash.gateway.remediation.finding import concerned, links_of
from helmdash.gateway.remediation.known_names import KnownNames
from helmdash.gateway.remediation.recent_restarts import RecentRestarts
from helmdash.gateway.remediation_state import CLEAR, RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations.recorder import Recorder
from helmdash.providers.protocols import ClientFormat

# The call before this one may still be on its way to the database: a commit takes milliseconds.
_CATCH_UP_S = 1.0


class Stepper:
    """Takes the steps of one process, and knows its conversations. Used on one event loop."""

    def __init__(self, recorder: Recorder, database: Database, recent: RecentRestarts) -> None:
        self._recorder = recorder
        self._database = database
        self._recent = recent
        self._names = KnownNames()
        self._due = DueSteps()

    async def take_step(
        self, exchange: Exchange, client: ClientFormat, state: RemediationState
    ) -> steps.Step | None:
        """Take the step and note it in the state; None for a conversation that nobody knows, and
        without a database."""
        try:
            step = await self._resting(exchange, client, state)
            if step is None:
                if state.links is not None and state.links.is_opening:
                    return None
                if self._database.is_asked:
                    newest = concerned(
                        exchange, state.conversation, state.links, is_near=state.is_near
                    )
                    await self._recorder.has_caught_up(newest, seconds=_CATCH_UP_S)
                step = await self._database.ask(partial(steps.next_step, exchange, client, state))
        except StepUnavailable:
            state.beginning = self._recent.find(state.key, state.history.entries)
            return None
        if step is None:
            return None
        if not step.is_resting:
            is_over = step.action == CLEAR or not step.is_held
            self._due.note(state.caller, step.conversation, is_over=is_over)
        state.conversation = step.conversation
        state.action, state.countdown = step.action, step.countdown
        state.round_number, state.generation = step.round_number, step.generation
        state.is_braked = step.is_braked
        state.is_watched = step.is_held or step.action == CLEAR
        state.beginning = step.beginning
        self._recent.keep(state.key, state.history.entries, step.beginning)
        return step

    def note(self, state: RemediationState, capture: Capture) -> None:
        """The call has ended: the next one goes on with the same conversation."""
        if state.conversation is not None and not state.named:
            self._names.note(state.caller, capture.links, state.conversation)
        if state.is_watched:
            # The next step needs it: better stored while the agent is at work than waited for. But
            # first the client gets its last byte, for which the writing thread would not make room.
            asyncio.get_running_loop().call_soon(self._recorder.hasten)

    async def _resting(
        self, exchange: Exchange, client: ClientFormat, state: RemediationState
    ) -> steps.Step | None:
        """The step where nothing is due, which most calls need no more than a look to tell; None:
        it has to be taken. Raises StepUnavailable."""
        if state.conversation is None:
            state.links = links_of(exchange)
            state.conversation = self._names.find(state.caller, state.links)
            state.is_near = state.conversation is not None
        if state.conversation is None or exchange.budget is None:
            return None
        if self._due.is_due(state.caller, state.conversation):
            state.conversation = state.named or None
            return None
        name = state.conversation
        waiting = self._recorder.unstored(concerned(exchange, name, state.links))
        if waiting is None:
            return None
        if state.links is not None:
            # Calls that this one goes on from are of its conversation, though they don't say so.
            waiting = tuple(replace(capture, conversation=name) for capture in waiting)
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
