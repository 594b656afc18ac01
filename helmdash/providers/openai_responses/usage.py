"""Usage in the names of the Responses API, from any vendor's."""

from __future__ import annotations

from helmdash.core.calls.usage import normalise_usage
from helmdash.providers.wire import Json, Object


def write_usage(raw: Object | None) -> dict[str, Json] | None:
    """Usage as clients read it; None unless prompt and completion are both known.

    The SDKs read the details without asking whether they are there. An unknown one is written as
    0: only a client sees that number, the record keeps the vendor's own.
    """
    usage = normalise_usage(raw)
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }
