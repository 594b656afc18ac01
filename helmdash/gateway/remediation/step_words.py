"""The request with the words of a step in it, unless they would make it too long."""

from __future__ import annotations

from dataclasses import replace

from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.remediation.lengths import expected_tokens, limit_tokens
from helmdash.gateway.remediation.steps import Step
from helmdash.gateway.remediation.writing import written
from helmdash.gateway.remediation_state import CLEAR, NONE, RemediationState
from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.protocols import ClientFormat


def with_words(
    exchange: Exchange,
    client: ClientFormat,
    state: RemediationState,
    outgoing: OutgoingRequest,
    step: Step | None,
) -> OutgoingRequest:
    """The request as it is sent; step None: none was taken, and only what was left out stays out.

    Our own words must not be what makes a request too long: there they are dropped, and the state
    says so.
    """
    guide, newest = (None, None) if step is None else (step.guide, step.newest)
    sent = _rewritten(exchange, client, state, outgoing, guide=guide)
    has_words = guide or state.beginning.inserts
    if has_words and expected_tokens(exchange, sent, newest) > limit_tokens(exchange):
        state.beginning = replace(state.beginning, inserts=())
        state.action = NONE if state.action != CLEAR else CLEAR
        sent = _rewritten(exchange, client, state, outgoing, guide=None)
    return sent


def _rewritten(
    exchange: Exchange,
    client: ClientFormat,
    state: RemediationState,
    outgoing: OutgoingRequest,
    *,
    guide: str | None,
) -> OutgoingRequest:
    """The client's own where nothing is left out or put in."""
    beginning = state.beginning
    if not (beginning.entries or beginning.inserts or guide):
        return outgoing
    return written(state.history, beginning, guide=guide, route=exchange.route, client=client)
