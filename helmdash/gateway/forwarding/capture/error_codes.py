"""The code of an error, as far as it may be kept."""

from __future__ import annotations

from helmdash.core.calls.withheld import kept_code
from helmdash.gateway.message_digest import turns_of
from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.wire import WireError


def kept_error_code(exchange: Exchange, error: WireError, *, keeps_texts: bool) -> str | None:
    """Of a provider that repeats the prompt there, nothing where the prompt is not kept: this is
    the last place that knows both."""
    code, request = error.code or error.type, exchange.request
    is_own = error is exchange.error and exchange.error_is_own
    if keeps_texts or not code or request is None or is_own:
        return code
    return kept_code(code, (turn.text for turn in turns_of(request.messages)))
