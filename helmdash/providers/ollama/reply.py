"""Ollama's whole replies, of `/api/chat` and of `/api/generate`, both ways; errors, embeddings.

Source: https://docs.ollama.com/api/chat. An error is `{"error": "…"}`, also as a line of a stream
that began with a 200. Old servers leave `prompt_eval_count` out where the prompt was cached, and
`done_reason` always (https://github.com/ollama/ollama/issues/2068).
"""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.usage import normalise_usage
from helmdash.providers.ollama.errors import find_error, undecodable, write_error
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.images import image_from_url
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import list_in, object_in, text_in
from helmdash.providers.shared.tool_ids import (
    CallIds,
    arguments_object,
    arguments_text,
    next_number,
)
from helmdash.providers.wire import (
    ChatRequest,
    Json,
    Object,
    Part,
    Reasoning,
    Reply,
    Text,
    ToolCall,
)

# What a reply reports about its cost: counts in tokens, durations in nanoseconds.
_USAGE = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
# The reasons that Ollama itself gives; calls of tools end in its "stop".
_DONE_REASONS = frozenset({"stop", "length", "load", "unload"})


# --- from Ollama


def read_reply(body: bytes, *, request: ChatRequest) -> Reply:
    """Read a whole reply of either method. Never raises: what cannot be read is an error."""
    value = read_json(body)
    if not isinstance(value, dict):
        return Reply(error=undecodable())
    error = find_error(value)
    if error is not None:
        return Reply(error=error)
    return Reply(
        model=text_in(value, "model"),
        parts=parts_of(value, CallIds(count=next_number(request.messages))),
        finish_reason=text_in(value, "done_reason"),
        usage=usage_of(value),
    )


def parts_of(value: Object, ids: CallIds) -> tuple[Part, ...]:
    """The parts of a reply or of one line of a stream: thoughts, text, images, calls."""
    message = object_in(value, "message")
    holder = value if message is None else message
    text = _said(value, message)
    thinking = text_in(holder, "thinking")
    parts: list[Part] = [Reasoning(text=thinking)] if thinking else []
    if text:
        parts.append(Text(text=text))
    for data in list_in(holder, "images"):
        if isinstance(data, str) and data:
            parts.append(image_from_url(f"data:;base64,{data}"))
    calls = (_call(raw, ids) for raw in list_in(holder, "tool_calls"))
    return (*parts, *(call for call in calls if call is not None))


def said_in(value: Object) -> str:
    """The visible text of a reply or of one line: a chat's message, or a prompt's completion."""
    return _said(value, object_in(value, "message")) or ""


def _said(value: Object, message: Object | None) -> str | None:
    return text_in(value, "response") if message is None else text_in(message, "content")


def _call(raw: Json, ids: CallIds) -> ToolCall | None:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        return None
    name = text_in(function, "name") or ""
    arguments = arguments_text(function.get("arguments"))
    return ToolCall(id=ids.call(name, text_in(raw, "id")), name=name, arguments=arguments)


def usage_of(value: Object) -> dict[str, Json] | None:
    """The counts and durations, as they came; None where there are none."""
    return {name: value[name] for name in _USAGE if value.get(name) is not None} or None


# --- to a client


def write_chat_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A whole reply of `/api/chat`; an error inside a 200 becomes Ollama's error."""
    return _write_reply(reply, answer, as_generate=False)


def write_generate_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A whole reply of `/api/generate`; an error inside a 200 becomes Ollama's error."""
    return _write_reply(reply, answer, as_generate=True)


def _write_reply(reply: Reply, answer: ReplyContext, *, as_generate: bool) -> bytes:
    if reply.error is not None:
        return write_error(reply.error)
    calls = [write_call(call, index) for index, call in enumerate(reply.tool_calls)]
    # An image is left out: the official client refuses a message of a reply that holds one.
    text = reply.text + (reply.refusal or "")
    said = content_of(text, reply.reasoning, calls, as_generate=as_generate)
    return orjson.dumps(
        {**opening_of(answer), **said, **ending_of(reply.finish_reason, reply.usage)}
    )


def opening_of(answer: ReplyContext) -> dict[str, Json]:
    """What every reply and every line begins with; the model is named as the client named it."""
    return {"model": answer.model, "created_at": timestamp(answer.created)}


def timestamp(seconds: int) -> str:
    """Seconds since the epoch as Ollama writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def content_of(
    text: str,
    thinking: str,
    calls: list[dict[str, Json]],
    *,
    as_generate: bool,
) -> dict[str, Json]:
    """What was said: under `message` in a chat, at the top where a prompt was completed."""
    about = without_nones(thinking=thinking or None, tool_calls=calls or None)
    if as_generate:
        return {"response": text, **about}
    return {"message": {"role": "assistant", "content": text, **about}}


def write_call(call: ToolCall, index: int) -> dict[str, Json]:
    """A tool call: its arguments are an object, not text."""
    arguments = arguments_object(call.arguments)
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments}}


def ending_of(reason: str | None, usage: Object | None) -> dict[str, Json]:
    """The end of a reply: done, why, and the counts; what is None, not known, is left out."""
    return {"done": True, **without_nones(done_reason=_done_reason(reason)), **_counts(usage)}


def _done_reason(reason: str | None) -> str | None:
    """Our word where Ollama has none: "stop" would hide that a reply was blocked."""
    if reason in _DONE_REASONS:
        return reason
    normalised = normalise_finish_reason(reason)
    if normalised is FinishReason.TOOL_CALLS:
        return "stop"
    return None if normalised is None else normalised.value


def _counts(usage: Object | None) -> dict[str, Json]:
    if usage is None:
        return {}
    own = usage_of(usage)
    if own is not None:
        return own
    found = normalise_usage(usage)
    return without_nones(prompt_eval_count=found.prompt_tokens, eval_count=found.completion_tokens)
