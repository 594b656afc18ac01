"""A fresh start for a request that does not fit."""

from __future__ import annotations

from functools import partial

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.care.reminders import package_bytes
from helmdash.core.care.restarts import Beginning
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.remediation import steps
from helmdash.gateway.remediation.database import Database, StepUnavailable
from helmdash.gateway.remediation.lengths import is_told_by_bytes
from helmdash.gateway.remediation.recent_restarts import RecentRestarts
from helmdash.gateway.remediation.writing import bytes_of, written
from helmdash.gateway.remediation_state import CLEAR, RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations import care
from helmdash.providers.protocols import ClientFormat

# A package that holds no reminders: six headings and a draft. A fresh start that frees no more
# than that is not worth one.
_PACKAGE_BYTES = 2_048


class FreshStarts:
    """Starts conversations afresh, one for each process. Used on one event loop."""

    def __init__(self, database: Database, recent: RecentRestarts) -> None:
        self._database = database
        self._recent = recent

    async def shorten(
        self, exchange: Exchange, client: ClientFormat, *, is_refused: bool = False
    ) -> OutgoingRequest | None:
        """Start afresh because the request does not fit; None where that gains nothing.

        is_refused: the upstream says so; what it finds too long may be in no byte of the request.
        At most once for each call, and not after a clear: then there is nothing left to drop. What
        cannot be stored, for the conversation is not known yet or the database is away, holds for
        this call.
        """
        state = exchange.remediation
        if state is None or not state.may_shorten:
            return None
        state.may_shorten = False
        body_bytes = len(exchange.outgoing.body)
        is_measured = not is_refused or is_told_by_bytes(exchange, body_bytes)
        size_bytes = body_bytes if is_measured else None
        beginning = await self._beginning(exchange, state, size_bytes=size_bytes)
        if beginning is None:
            return None
        state.action, state.countdown = CLEAR, None
        state.beginning = beginning
        self._recent.keep(state.key, state.history.entries, beginning)
        shorter = written(state.history, beginning, route=exchange.route, client=client)
        if size_bytes is not None and len(shorter.body) >= size_bytes:
            return None
        exchange.outgoing = shorter
        return shorter

    async def _beginning(
        self, exchange: Exchange, state: RemediationState, *, size_bytes: int | None
    ) -> Beginning | None:
        """What a request of so many bytes (None: they tell nothing) would begin with; None where
        it gains nothing, or remediation has stopped clearing."""
        history, bare = state.history, state.history.bare()
        if state.is_braked or state.action == CLEAR:
            return None
        if not history.is_dropping(before=state.beginning, after=bare):
            return None
        spare = _spare_bytes(exchange.budget)
        if size_bytes is not None and bytes_of(history, bare) + spare >= size_bytes:
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


def _spare_bytes(budget: EffectiveBudget | None) -> int:
    """What a package takes that holds no reminders."""
    return _PACKAGE_BYTES if budget is None else min(_PACKAGE_BYTES, package_bytes(budget))
