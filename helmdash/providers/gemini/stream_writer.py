"""Writing streams for Gemini's clients: server-sent events (`?alt=sse`) or one JSON array."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from helmdash.providers.gemini.errors import error_object
from helmdash.providers.gemini.parts import unmarked, write_reply_parts
from helmdash.providers.gemini.reply import chunk_of
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.wire import (
    Ended,
    Event,
    Failed,
    Finished,
    Json,
    Object,
    Part,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
)


class GeminiStreamWriter:
    """Events to a Gemini stream, of server-sent events or of one array.

    Function calls are held back until the end: Gemini gives each in one piece.
    """

    __slots__ = (
        "_as_array",
        "_calls",
        "_finish",
        "_has_written",
        "_is_over",
        "_model",
        "_reply_id",
        "_seal",
        "_usage",
    )

    def __init__(self, *, answer: ReplyContext, as_array: bool = False) -> None:
        self._reply_id = answer.call_id
        self._model = answer.model
        self._as_array = as_array
        self._seal: Reasoning | None = None
        self._calls: dict[int, tuple[Reasoning | None, ToolCall]] = {}
        self._finish: str | None = None
        self._usage: Object | None = None
        self._has_written = False
        self._is_over = False

    def write(self, event: Event) -> bytes:
        """The bytes for one event; none after the end."""
        if self._is_over:
            return b""
        match event:
            case Started():
                self._reply_id = event.id or self._reply_id
                self._model = event.model or self._model
            case TextDelta() | RefusalDelta():
                return self._parts(Text(text=event.text)) if event.text else b""
            case ReasoningDelta():
                return self._reasoning(event)
            case ToolCallStarted():
                call = ToolCall(id=event.id, name=event.name, arguments="")
                self._calls[event.index] = (self._seal, call)
                self._seal = None
            case ToolCallDelta():
                self._add_arguments(event)
            case Finished():
                self._finish = event.reason
            case UsageSeen():
                self._usage = event.usage
            case Failed():
                self._is_over = True
                return self._framed(error_object(event.error))
            case Ended():
                return self._end()
        return b""

    def close(self) -> bytes:
        """The last chunk, if it has not been written, and the end of the array."""
        found = b"" if self._is_over else self._end()
        if not self._as_array:
            return found
        self._as_array, opening = False, b"" if self._has_written else b"["
        return found + opening + b"]"

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        part = Reasoning(text=event.text, signature=event.signature)
        if event.text:
            return self._parts(part)
        if unmarked(event.signature) is not None:
            self._seal = part
        return b""

    def _add_arguments(self, event: ToolCallDelta) -> None:
        if event.index not in self._calls:
            return
        seal, call = self._calls[event.index]
        arguments = call.arguments + event.arguments
        self._calls[event.index] = (
            seal,
            ToolCall(id=call.id, name=call.name, arguments=arguments),
        )

    def _parts(self, *parts: Part) -> bytes:
        sealed = parts if self._seal is None else (self._seal, *parts)
        self._seal = None
        return self._chunk(sealed)

    def _end(self) -> bytes:
        self._is_over = True
        parts: list[Part] = []
        for seal, call in self._calls.values():
            parts.extend((call,) if seal is None else (seal, call))
        if self._seal is not None:
            parts.append(self._seal)
        if not parts and self._finish is None and self._usage is None:
            return b""
        return self._chunk(parts, finish_reason=self._finish, usage=self._usage)

    def _chunk(
        self,
        parts: Iterable[Part],
        *,
        finish_reason: str | None = None,
        usage: Object | None = None,
    ) -> bytes:
        return self._framed(
            chunk_of(
                write_reply_parts(parts),
                finish_reason=finish_reason,
                usage=usage,
                reply_id=self._reply_id,
                model=self._model,
            )
        )

    def _framed(self, value: Json) -> bytes:
        body = orjson.dumps(value)
        if not self._as_array:
            return b"data: " + body + b"\r\n\r\n"
        opening = b",\r\n" if self._has_written else b"["
        self._has_written = True
        return opening + body
