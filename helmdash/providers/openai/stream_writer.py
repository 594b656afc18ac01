"""Streams of the OpenAI chat format, written for a client."""

from __future__ import annotations

from helmdash.providers.openai.errors import error_object
from helmdash.providers.openai.reply import (
    completion_id,
    write_finish_reason,
    write_usage,
)
from helmdash.providers.openai.write_messages import reasoning_details
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import (
    ContextEdited,
    Ended,
    Event,
    Failed,
    Finished,
    Json,
    MediaSeen,
    Object,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
)

_DONE_EVENT = b"data: [DONE]\n\n"


class OpenAIStreamWriter:
    """Events to a stream as OpenAI would send it.

    Usage is sent last, in a chunk without choices, and only to a client that asked for it. After
    an error nothing follows, no end mark either: OpenAI's clients raise at the error.
    """

    __slots__ = (
        "_answer",
        "_finish",
        "_has_calls",
        "_head",
        "_is_over",
        "_tail",
        "_usage",
        "_wants_usage",
    )

    def __init__(self, *, answer: ReplyContext, wants_usage: bool) -> None:
        self._answer = answer
        self._wants_usage = wants_usage
        self._finish: str | None = None
        self._has_calls = False
        self._head = b""
        self._is_over = False
        self._tail = b',"usage":null}\n\n' if wants_usage else b"}\n\n"
        self._usage: Object | None = None

    def write(self, event: Event) -> bytes:
        """The bytes for one event; none for one that waits or says nothing here."""
        if self._is_over:
            return b""
        match event:
            case TextDelta(text=text):
                return self._chunk({"content": text})
            case Started(id=reply_id, model=model):
                return self._start(reply_id, model)
            case ReasoningDelta():
                return self._chunk(_reasoning_delta(event))
            case RefusalDelta(text=text):
                return self._chunk({"refusal": text})
            case ToolCallStarted() | ToolCallDelta():
                self._has_calls = True
                return self._chunk({"tool_calls": [_call_delta(event)]})
            case Finished(reason=reason):
                return self._write_finish(reason)
            case UsageSeen(usage=usage):
                self._usage = usage
                return b""
            case Failed(error=error):
                self._is_over = True
                return b"data: " + to_json({"error": error_object(error)}) + b"\n\n"
            case Ended():
                return self._write_finish("stop") + self.close()
            case ContextEdited() | MediaSeen():
                return b""  # no word for it here; the record keeps it

    def close(self) -> bytes:
        """Usage and the end mark.

        Nothing after an error, nor where the upstream gave neither a finish reason nor an end
        mark: that reply was cut off, and a client must not take it for whole.
        """
        if self._is_over or self._finish is None:
            return b""
        self._is_over = True
        return self._usage_chunk() + _DONE_EVENT

    def _start(self, reply_id: str | None, model: str | None) -> bytes:
        if self._head:
            return b""
        known = {
            "id": reply_id or completion_id(self._answer),
            "object": "chat.completion.chunk",
            "created": self._answer.created,
            "model": model or self._answer.model,
        }
        self._head = b"data: " + to_json(known)[:-1]
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(self, delta: Json, finish: bytes = b"null") -> bytes:
        opening = b"" if self._head else self._start(None, None)
        return b"".join(
            (
                opening,
                self._head,
                b',"choices":[{"index":0,"delta":',
                to_json(delta),
                b',"logprobs":null,"finish_reason":',
                finish,
                b"}]",
                self._tail,
            )
        )

    def _write_finish(self, raw: str) -> bytes:
        if self._finish is not None:
            return b""
        self._finish = write_finish_reason(raw, has_tool_calls=self._has_calls) or "stop"
        return self._chunk({}, to_json(self._finish))

    def _usage_chunk(self) -> bytes:
        usage = write_usage(self._usage) if self._wants_usage else None
        if usage is None:
            return b""
        return self._head + b',"choices":[],"usage":' + to_json(usage) + b"}\n\n"


def _reasoning_delta(event: ReasoningDelta) -> dict[str, Json]:
    said: dict[str, Json] = {"reasoning_content": event.text} if event.text else {}
    if event.signature is not None:
        said["reasoning_details"] = reasoning_details(event.text or None, event.signature)
    return said


def _call_delta(event: ToolCallStarted | ToolCallDelta) -> dict[str, Json]:
    if isinstance(event, ToolCallDelta):
        return {"index": event.index, "function": {"arguments": event.arguments}}
    return {
        "index": event.index,
        "id": event.id,
        "type": "function",
        "function": {"name": event.name, "arguments": ""},
    }
