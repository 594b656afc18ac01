"""How a reply ended and what it used, in Anthropic's words, from any vendor's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.usage import normalise_usage
from helmdash.providers.wire import Json, Object

STOP_REASONS = frozenset(
    """end_turn max_tokens stop_sequence tool_use pause_turn refusal
    model_context_window_exceeded compaction""".split()
)


def stop_reason_of(raw: str | None, *, has_calls: bool, has_refusal: bool) -> str | None:
    """Anthropic's stop reason for any vendor's finish reason; its own words stay as they are.

    Gemini and Ollama say "stop" for a reply that asks for tools, OpenAI says it for a refusal.
    None where the vendor gave no reason: the reply was cut off.
    """
    if has_refusal:
        return "refusal"
    if raw in STOP_REASONS and raw != "end_turn":
        return raw
    finish = normalise_finish_reason(raw)
    if finish is None:
        return None
    if has_calls and finish is FinishReason.STOP:
        return "tool_use"
    return _word_of(finish)


def _word_of(finish: FinishReason) -> str:
    """Anthropic has no words for errors, cancellations and what nobody knows: the turn ended."""
    match finish:
        case FinishReason.LENGTH:
            return "max_tokens"
        case FinishReason.TOOL_CALLS:
            return "tool_use"
        case FinishReason.CONTENT_FILTER | FinishReason.REFUSAL:
            return "refusal"
        case FinishReason.STOP | FinishReason.ERROR | FinishReason.CANCELLED | FinishReason.OTHER:
            return "end_turn"
        case _:
            assert_never(finish)


def usage_of(raw: Object | None) -> dict[str, Json]:
    """Anthropic's usage from any vendor's (None: not reported): the three prompt counters do not
    overlap here.

    The format cannot leave the two main counts out. An unknown one is written as 0: only a client
    sees that number, the record keeps the vendor's own.
    """
    usage = normalise_usage(raw)
    parts = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
    written: dict[str, Json] = {
        "input_tokens": max((usage.prompt_tokens or 0) - parts, 0),
        "output_tokens": usage.completion_tokens or 0,
    }
    if usage.cache_write_tokens is not None:
        written["cache_creation_input_tokens"] = usage.cache_write_tokens
    if usage.cached_tokens is not None:
        written["cache_read_input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens is not None:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return written


def stop_details_of(refusal: str | None) -> dict[str, Json] | None:
    """The words of a refusal where Anthropic puts them; None: nothing was refused."""
    if refusal is None:
        return None
    return {"type": "refusal", "category": None, "explanation": refusal}


def refusal_of(stop_details: Json) -> str | None:
    """The words of a refusal; None where nothing was refused, or without words."""
    if not isinstance(stop_details, Mapping) or stop_details.get("type") != "refusal":
        return None
    explanation = stop_details.get("explanation")
    return explanation if isinstance(explanation, str) and explanation else None


def message_id(identifier: str | None, call_id: str) -> str:
    """An id as Anthropic's look: the upstream's own if it is one, else (or None: it gave none) made
    of the call's."""
    if identifier is not None and identifier.startswith("msg_"):
        return identifier
    return f"msg_{call_id}"
