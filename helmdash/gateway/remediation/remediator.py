"""Remediation before a chat call, as a row: its history, its step, its words, its length."""

from __future__ import annotations

import logging

from helmdash.core.calls.capture import Capture
from helmdash.gateway.histories.history import history_of
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.remediation.database import Database
from helmdash.gateway.remediation.fresh_starts import FreshStarts
from helmdash.gateway.remediation.lengths import is_too_long
from helmdash.gateway.remediation.recent_restarts import RecentRestarts
from helmdash.gateway.remediation.step_words import with_words
from helmdash.gateway.remediation.stepping import Stepper
from helmdash.gateway.remediation_state import RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations.recorder import Recorder
from helmdash.providers.protocols import ClientFormat

log = logging.getLogger(__name__)


class Remediator:
    """Remediates the conversations of calls, one for each process. Used on one event loop."""

    def __init__(self, recorder: Recorder) -> None:
        self._database = Database()
        recent = RecentRestarts()
        self._stepper = Stepper(recorder, self._database, recent)
        self.fresh_starts = FreshStarts(self._database, recent)

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
            caller=exchange.asker,
            named=exchange.conversation or "",
            conversation=exchange.conversation,
        )
        try:
            step = await self._stepper.take_step(exchange, client, state)
            sent = with_words(exchange, client, state, outgoing, step)
            exchange.outgoing = sent
            if is_too_long(exchange, sent, None if step is None else step.newest):
                return await self.fresh_starts.shorten(exchange, client) or sent
        except Exception:
            log.exception("a call could not be remediated")
            return outgoing
        return sent

    def note(self, exchange: Exchange, capture: Capture) -> None:
        """The call has ended: the next one goes on with the same conversation."""
        if exchange.remediation is not None:
            self._stepper.note(exchange.remediation, capture)


def _is_wanted(exchange: Exchange) -> bool:
    """Whether this call's conversation is remediated: the header decides, else the project. A side
    call is no step of it, and of a fragment nobody knows the history."""
    if exchange.is_side or (exchange.request is not None and exchange.request.is_fragment):
        return False
    asked_for = exchange.options.remediation
    return exchange.key_context.caller.project.remediation if asked_for is None else asked_for
