"""An upstream's error in words that a client of another format acts on."""

from __future__ import annotations

import re
from dataclasses import replace

from helmdash.core.budgets.refused_windows import refused_window
from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.gateway.budgeting import estimate
from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.wire import WireError

# What agents look for before they shorten their prompt: OpenAI's code; of the other vendors only
# the message says it. Claude Code, for one, reads both numbers out of Anthropic's own sentence.
_OVERFLOW = "context_length_exceeded"
_TOO_LARGE = (400, 413)
# As much of a refusal as is read for the size of what was refused; vendors say it at once.
_READ_CHARS = 4_000
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
# Larger numbers in a refusal are ids and times: no prompt is so many windows long.
_MOST_WINDOWS = 100


def is_overflow(error: WireError) -> bool:
    """Whether an upstream refuses a request because it does not fit."""
    return kind_of_error(error.code, error.message) is ErrorKind.CONTEXT


def normalise_overflow_error(error: WireError, exchange: Exchange) -> WireError:
    """The same error; one that means "the prompt does not fit" says so in its code, and in the
    words of the client's own vendor, with the tokens of the prompt and of the window.

    As the upstream names them, else as HelmDash estimates and knows them; the upstream's own words
    stand behind. Where nobody knows a window, its words stay as they are.
    """
    if not is_overflow(error) or error.status not in _TOO_LARGE:
        return error
    return replace(
        error,
        message=_words(error.message, exchange),
        code=_OVERFLOW,
        type="invalid_request_error",
        status=400,
    )


def is_json_body(data: bytes) -> bool:
    """Whether an SDK can read an error body; a page of HTML from a proxy it cannot."""
    return isinstance(read_json(data), dict | list)


def _words(message: str, exchange: Exchange) -> str:
    budget = exchange.budget
    told = exchange.refused_window or refused_window(message)
    window = told or (budget.limit_tokens if budget is not None else None)
    if window is None or budget is None:
        return message
    tokens = _refused_tokens(message, told) or estimate(exchange.outgoing, budget).tokens
    tokens = max(tokens, window + 1)  # it was refused, so it was more
    words = exchange.route.client.too_long_words.format(
        estimate=tokens, limit=window, over=tokens - window
    )
    upstream = exchange.endpoint.name if exchange.endpoint is not None else "the upstream"
    return f"{words} ({upstream}: {message})"


def _refused_tokens(message: str, window: int | None) -> int | None:
    """The first number of a refusal that is larger than the window it names: the prompt's."""
    if window is None:
        return None
    found = (int(each.replace(",", "")) for each in _NUMBER.findall(message[:_READ_CHARS]))
    return next((each for each in found if window < each < window * _MOST_WINDOWS), None)
