"""The health level that a client is told with its answer."""

from __future__ import annotations

from helmdash.core.budgets.health import assess
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.usage import Usage
from helmdash.core.truncation.sizes import Sizes
from helmdash.gateway.exchange import Exchange
from helmdash.operations.recording import truncation
from helmdash.providers.wire import Reply


def level_of(exchange: Exchange, counts: Usage) -> str:
    """The health level of these counts; unknown where they look as if the prompt was cut."""
    if exchange.budget is None or _looks_cut(exchange, counts):
        return Level.UNKNOWN.value
    return assess(counts.prompt_tokens, exchange.budget).level.value


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
