"""A body that came instead of a stream: an error as JSON, or a whole reply."""

from __future__ import annotations

from helmdash.providers.anthropic.reply import read_reply
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    UNDECODABLE_STREAM,
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)

_BOM = b"\xef\xbb\xbf"
_LONGEST_BEGINNING = 1024  # bytes of white space before JSON; nobody sends any


def read_unstreamed(body: bytes, *, request: ChatRequest) -> list[Event]:
    """The events of a whole body; none of an empty one. Never raises."""
    body = body.removeprefix(_BOM).strip()
    return _events_of(read_reply(body, request=request)) if body else []


def _events_of(reply: Reply) -> list[Event]:
    """A whole reply as if it had been streamed."""
    if reply.error is not None:
        code = reply.error.code
        if code != UNDECODABLE_REPLY:
            return [Failed(error=reply.error)]
        return [Failed(error=WireError(message=reply.error.message, code=UNDECODABLE_STREAM))]
    events: list[Event] = [Started(id=reply.id, model=reply.model)]
    calls = 0
    for part in reply.parts:
        match part:
            case Text():
                events.append(TextDelta(text=part.text))
            case Reasoning():
                events.append(ReasoningDelta(text=part.text, signature=part.signature))
            case ToolCall():
                events.append(ToolCallStarted(index=calls, id=part.id, name=part.name))
                events.append(ToolCallDelta(index=calls, arguments=part.arguments))
                calls += 1
            case _:
                pass
    if reply.refusal is not None:
        events.append(RefusalDelta(text=reply.refusal))
    if reply.usage is not None:
        events.append(UsageSeen(usage=reply.usage))
    if reply.finish_reason is not None:
        # Without a reason nobody knows that the reply is whole.
        events += [Finished(reason=reply.finish_reason), Ended()]
    return events


def begins_like_json(data: bytes | bytearray) -> bool | None:
    """Whether a body begins like a JSON object; None where it has not begun."""
    if _BOM.startswith(data):
        return None
    start = data[:_LONGEST_BEGINNING].removeprefix(_BOM).lstrip(b" \t\r\n")
    if not start and len(data) < _LONGEST_BEGINNING:
        return None
    return start.startswith(b"{")
