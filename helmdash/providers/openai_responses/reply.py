"""Whole responses, both ways."""

from __future__ import annotations

from helmdash.providers.openai_responses.errors import error_in_response, write_error
from helmdash.providers.openai_responses.items.calls import call_of, is_call
from helmdash.providers.openai_responses.items.compactions import KINDS
from helmdash.providers.openai_responses.items.reasoning import reasoning_of
from helmdash.providers.openai_responses.stream_writer import ResponsesStreamWriter
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.bodies import read_json, to_json
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.shared.reported import object_in, objects_in, text_in
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    Finished,
    Object,
    Part,
    Reply,
    Text,
    WireError,
)

_COMPACTION = "response.compaction"
_NO_OBJECT = WireError(message="The reply is not a JSON object.", code=UNDECODABLE_REPLY)


def read_reply(body: bytes) -> Reply:
    """Read the body of a 200. Never raises: what cannot be read is `reply.error`."""
    value = read_json(body)
    if not isinstance(value, dict):
        return Reply(error=_NO_OBJECT)
    return reply_of(value)


def is_picture(item: Object) -> bool:
    """Whether an item is a picture that the model drew."""
    return item.get("type") == "image_generation_call" and bool(item.get("result"))


def reply_of(response: Object) -> Reply:
    """The reply that a response holds, as far as it can be read. Never raises."""
    parts: list[Part] = []
    refusals: list[str] = []
    is_compaction = response.get("object") == _COMPACTION
    for item in objects_in(response, "output"):
        kind = item.get("type")
        if kind == "message":
            parts += [Text(text=text) for text in _said(item, "output_text", "text")]
            refusals += _said(item, "refusal", "refusal")
        elif kind in KINDS and is_compaction:
            # Sealed or not, it is all that was written.
            parts.append(Text(text=text_in(item, "encrypted_content") or ""))
        elif kind == "reasoning":
            parts.append(reasoning_of(item))
        elif is_call(kind) and (call := call_of(item)) is not None:
            parts.append(call)
    return Reply(
        id=text_in(response, "id"),
        model=text_in(response, "model"),
        parts=tuple(parts),
        refusal="".join(refusals) or None,
        finish_reason=finish_reason(response),
        usage=object_in(response, "usage"),
        error=error_in_response(response),
        has_media=any(map(is_picture, objects_in(response, "output"))) or None,
    )


def finish_reason(response: Object) -> str | None:
    """The reason that it is incomplete, else its status; None where neither is told."""
    if response.get("object") == _COMPACTION:
        return "completed"  # it has no status, and is whole
    details = object_in(response, "incomplete_details") or {}
    return text_in(details, "reason") or text_in(response, "status")


def write_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A reply as OpenAI would send it; an error without a reply as OpenAI's error."""
    if reply.error is not None and not reply.parts:
        return write_error(reply.error)
    writer = ResponsesStreamWriter(answer=answer)
    for event in events_of(reply):
        writer.write(event)
    if reply.finish_reason is None and reply.error is None:
        writer.write(Finished(reason="completed"))  # it is here as a whole
    writer.close()
    return to_json(writer.response)


def _said(message: Object, kind: str, member: str) -> list[str]:
    parts = objects_in(message, "content")
    texts = (text_in(part, member) for part in parts if part.get("type") == kind)
    return [text for text in texts if text]
