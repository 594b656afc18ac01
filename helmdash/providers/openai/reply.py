"""Whole replies of the OpenAI chat format, both ways, and usage in OpenAI's shape."""

from __future__ import annotations

from typing import assert_never

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.usage import normalise_usage
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.errors import (
    error_in,
    error_of_choice,
    write_error,
)
from helmdash.providers.openai.read_messages import read_parts
from helmdash.providers.openai.write_messages import reasoning_details, write_tool_call
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.quirks import USAGE_PLACES
from helmdash.providers.shared.bodies import read_json, to_json
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import UNDECODABLE_REPLY, Json, Object, Reasoning, Reply, WireError

# The finish reasons OpenAI itself gives; clients compare with them.
_OWN_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})

_OWN_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


# --- reading


def read_reply(body: bytes) -> Reply:
    """Read the body of a 200. Never raises: what cannot be read is `reply.error`."""
    value = read_json(body)
    if not isinstance(value, dict):
        return Reply(error=_undecodable("The reply is not a JSON object."))
    choice = first_choice(value)
    message = choice.get("message") or choice.get("delta")
    return _reply(value, choice, message if isinstance(message, dict) else _legacy(choice))


def first_choice(value: Object) -> Object:
    """The choice that is recorded: the one with the index 0; {} where there is none."""
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        return {}
    first = choices[0]
    if isinstance(first, dict) and not first.get("index"):
        return first
    return next((c for c in choices if isinstance(c, dict) and not c.get("index")), {})


def find_usage(value: Object) -> Object | None:
    """The usage report in a reply or a chunk, at the first place that has one; None: none has."""
    for place in USAGE_PLACES:
        found: Json = value
        for step in place.path:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict) and found:
            return found
    return _usage_of_timings(value.get("timings"))


def _usage_of_timings(timings: Json) -> Object | None:
    """llama.cpp's own counts; only newer servers say what came from their cache (cache_n).

    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """
    if not isinstance(timings, dict):
        return None
    cached, fresh = timings.get("cache_n"), timings.get("prompt_n")
    if not isinstance(cached, int) or not isinstance(fresh, int):
        return None
    return {
        "prompt_tokens": cached + fresh,
        "completion_tokens": timings.get("predicted_n"),
        "cached_tokens": cached,
    }


def _reply(value: Object, choice: Object, message: Object) -> Reply:
    try:
        parts = read_parts(message)
    except BadRequest as problem:
        return Reply(error=_undecodable(str(problem)))
    return Reply(
        id=text_in(value, "id"),
        model=text_in(value, "model"),
        parts=parts,
        refusal=text_in(message, "refusal"),
        finish_reason=text_in(choice, "finish_reason"),
        usage=find_usage(value),
        error=error_in(value) or error_of_choice(choice),
        has_media=has_media(message) or None,
    )


def has_media(message: Object) -> bool:
    """Whether speech (OpenAI's `audio`) or pictures (OpenRouter's `images`) came in a message, or
    in a piece of one."""
    return bool(message.get("audio") or message.get("images"))


def _legacy(choice: Object) -> Object:
    """A choice of the old completions: its text stands where the message would."""
    text = choice.get("text")
    return {"content": text} if isinstance(text, str) else {}


def _undecodable(message: str) -> WireError:
    return WireError(message=message, code=UNDECODABLE_REPLY)


# --- writing


def write_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A reply as OpenAI would send it; an error without a reply as OpenAI's error."""
    if reply.error is not None and not reply.parts:
        return write_error(reply.error)
    finish = write_finish_reason(reply.finish_reason, has_tool_calls=bool(reply.tool_calls))
    body: dict[str, Json] = {
        "id": reply.id or completion_id(answer),
        "object": "chat.completion",
        "created": answer.created,
        "model": reply.model or answer.model,
        "choices": [
            {"index": 0, "message": _message(reply), "logprobs": None, "finish_reason": finish}
        ],
    }
    usage = write_usage(reply.usage)
    if usage is not None:
        body["usage"] = usage
    return to_json(body)


def completion_id(answer: ReplyContext) -> str:
    """An id in OpenAI's manner for a reply that has none."""
    return f"chatcmpl-{answer.call_id}"


def write_finish_reason(raw: str | None, *, has_tool_calls: bool) -> str | None:
    """The finish reason in OpenAI's words; None where the vendor gave none.

    Gemini and Ollama say "stop" after tool calls, which OpenAI's clients would take for the end.
    """
    if raw in _OWN_REASONS and not (raw == "stop" and has_tool_calls):
        return raw
    reason = normalise_finish_reason(raw)
    if reason is None:
        return None
    if reason is FinishReason.STOP and has_tool_calls:
        return "tool_calls"
    match reason:
        case FinishReason.LENGTH:
            return "length"
        case FinishReason.CONTENT_FILTER | FinishReason.REFUSAL:
            return "content_filter"
        case FinishReason.TOOL_CALLS:
            return "tool_calls"
        case FinishReason.STOP | FinishReason.ERROR | FinishReason.CANCELLED | FinishReason.OTHER:
            return "stop"
        case _:
            assert_never(reason)


def write_usage(raw: Object | None) -> Object | None:
    """Usage in OpenAI's names; OpenAI's own stays as it is.

    None unless prompt and completion are both known: clients add them up, and 0 would be a lie.
    """
    if raw is None:
        return None
    if all(isinstance(raw.get(name), int) for name in _OWN_COUNTS):
        return raw
    usage = normalise_usage(raw)
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    written: dict[str, Json] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.cached_tokens is not None:
        written["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        written["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return written


def _message(reply: Reply) -> dict[str, Json]:
    message: dict[str, Json] = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": reply.refusal,
    }
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    seals = [
        detail
        for part in reply.parts
        if isinstance(part, Reasoning) and part.signature is not None
        for detail in reasoning_details(part.text, part.signature)
    ]
    if seals:
        message["reasoning_details"] = seals
    if reply.tool_calls:
        message["tool_calls"] = [write_tool_call(call) for call in reply.tool_calls]
    return message
