"""The health level that a client is told with its answer."""

from __future__ import annotations

from helmdash.core.budgets.health import level_for
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.usage import Usage
from helmdash.core.truncation.sizes import Sizes
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations.recording import truncation
from helmdash.providers.wire import Reply


def level_of(exchange: Exchange, counts: Usage) -> str:
    """The health level of these counts; unknown where they look as if the prompt was cut."""
    if exchange.budget is None:
        return Level.UNKNOWN
    level = level_for(counts.prompt_tokens, exchange.budget)
    # Asked last: of what has no level anyhow, no cut takes it away.
    is_certain = level is not Level.UNKNOWN and not _looks_cut(exchange, counts)
    return level if is_certain else Level.UNKNOWN


def _looks_cut(exchange: Exchange, counts: Usage) -> bool:
    request = exchange.outgoing.chat
    if request is None or request.is_fragment:
        return False
    reply = exchange.reply or Reply()
    return truncation.looks_cut(
        exchange.key_context.caller.project.id,
        exchange.model_key,
        reply.model or exchange.upstream_model,
        Sizes(
            bytes=exchange.outgoing.text_bytes,
            tokens=counts.prompt_tokens,
            messages=len(request.messages),
            reasoning=counts.reasoning_tokens,
            window=exchange.window,
            is_blind=bool(exchange.outgoing.images),
        ),
    )
