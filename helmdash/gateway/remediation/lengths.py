"""Whether a request fits, as far as that can be told before it is sent."""

from __future__ import annotations

from math import inf

from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway import budgeting
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations import care

# Expected tokens are within a few percent of the reported ones while the text is of one kind. A
# provider that refuses what is too long tells for sure, and costs a round trip only; Ollama cuts.
_PLAINLY = 1.1


def is_too_long(exchange: Exchange, outgoing: OutgoingRequest, newest: care.Newest | None) -> bool:
    """Whether it is plain before sending that the request does not fit.

    By the conversation's own last reading, in the same round and by the same model (newest; None:
    there is none), never by a guess at bytes per token: that would cost a conversation its
    beginning. In doubt the upstream tells. A request that the budget would refuse is refused by us,
    which is no better.
    """
    if exchange.budget is None:
        return False
    cuts = exchange.endpoint is not None and exchange.endpoint.kind is ProviderKind.OLLAMA
    most = limit_tokens(exchange) * (1.0 if cuts else _PLAINLY)
    is_over = expected_tokens(exchange, outgoing, newest) > most
    return is_over or budgeting.is_refused(exchange, outgoing)


def expected_tokens(
    exchange: Exchange, outgoing: OutgoingRequest, newest: care.Newest | None
) -> int:
    """The tokens of a request, by the reading of the call before; 0: there is no reading (newest
    None)."""
    if newest is None or newest.model != exchange.model:
        return 0
    return newest.tokens_of(outgoing.text_bytes)


def is_told_by_bytes(exchange: Exchange, size_bytes: int) -> bool:
    """Whether the bytes of a request that was refused can be what is too long of it.

    A token has a byte at least. With fewer bytes than the model takes tokens it is something that
    they only name (images by their address, files), or that the provider adds by itself.
    """
    budget = exchange.budget
    takes = exchange.refused_window or (None if budget is None else budget.limit_tokens)
    return takes is None or size_bytes > takes


def limit_tokens(exchange: Exchange) -> float:
    """The model's own limit; infinite without one, for then nothing is too long."""
    budget = exchange.budget
    if budget is None or budget.limit_tokens is None:
        return inf
    return inf if budget.limit_source is LimitSource.BUDGET else float(budget.limit_tokens)
