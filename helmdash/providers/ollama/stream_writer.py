"""Ollama's streams, written for a client: one JSON object a line, the last with done."""

from __future__ import annotations

import orjson

from helmdash.providers.ollama.errors import write_error
from helmdash.providers.ollama.reply import (
    content_of,
    ending_of,
    opening_of,
    write_call,
)
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.wire import (
    Ended,
    Event,
    Failed,
    Finished,
    Json,
    Object,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
)


class OllamaStreamWriter:
    """Events to lines. Tool calls are held back until the end: Ollama gives each in one piece."""

    __slots__ = ("_answer", "_arguments", "_as_generate", "_calls", "_is_over", "_reason", "_usage")

    def __init__(self, *, answer: ReplyContext, as_generate: bool = False) -> None:
        self._answer = answer
        self._as_generate = as_generate
        self._calls: dict[int, ToolCallStarted] = {}
        self._arguments: dict[int, list[str]] = {}
        self._reason: str | None = None
        self._usage: Object | None = None
        self._is_over = False

    def write(self, event: Event) -> bytes:
        """The bytes for one event; none after the end."""
        if self._is_over:
            return b""
        match event:
            case TextDelta() | RefusalDelta():
                return self._said(text=event.text) if event.text else b""
            case ReasoningDelta():
                return self._said(thinking=event.text) if event.text else b""
            case ToolCallStarted():
                self._calls[event.index] = event
                self._arguments[event.index] = []
            case ToolCallDelta():
                self._arguments.setdefault(event.index, []).append(event.arguments)
            case Finished():
                self._reason = event.reason
            case UsageSeen():
                self._usage = event.usage
            case Failed():
                self._is_over = True
                return write_error(event.error) + b"\n"
            case Ended():
                return self.close()
            case Started():
                pass  # a reply has no id, and the model is named as the client named it
        return b""

    def close(self) -> bytes:
        """The tool calls and the last line, if they have not been written."""
        if self._is_over:
            return b""
        self._is_over = True
        calls = [
            write_call(
                ToolCall(
                    id=started.id,
                    name=started.name,
                    arguments="".join(self._arguments[index]),
                ),
                place,
            )
            for place, (index, started) in enumerate(self._calls.items())
        ]
        before = self._said(calls=calls) if calls else b""
        last = content_of("", "", [], as_generate=self._as_generate)
        return before + self._line({**last, **ending_of(self._reason, self._usage)})

    def _said(
        self, *, text: str = "", thinking: str = "", calls: list[dict[str, Json]] | None = None
    ) -> bytes:
        said = content_of(text, thinking, calls or [], as_generate=self._as_generate)
        return self._line({**said, "done": False})

    def _line(self, members: Object) -> bytes:
        return orjson.dumps({**opening_of(self._answer), **members}) + b"\n"
