"""Ollama's streams, both ways: one JSON object a line, the last with `done: true`.

Source: https://docs.ollama.com/api/streaming and /api/errors.
"""

from __future__ import annotations

from helmdash.providers.ollama.errors import find_error
from helmdash.providers.ollama.reply import (
    parts_of,
    usage_of,
)
from helmdash.providers.shared.bodies import read_object
from helmdash.providers.shared.ndjson import NdjsonDecoder
from helmdash.providers.shared.reported import text_in
from helmdash.providers.shared.tool_ids import CallIds, next_number
from helmdash.providers.wire import (
    UNDECODABLE_STREAM,
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
    Object,
    Part,
    Reasoning,
    ReasoningDelta,
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
_BAD_LINE = "A line of Ollama's stream is no JSON object."
_BAD_END = "Ollama's stream cannot be read from here on."


class OllamaStreamReader:
    """A stream of either method to events. Never raises.

    Nothing follows an error of Ollama's or the end. A line that cannot be read is passed over and
    told once.
    """

    __slots__ = ("_calls", "_has_started", "_has_unreadable", "_ids", "_is_over", "_lines")

    def __init__(self, *, request: ChatRequest) -> None:
        self._lines = NdjsonDecoder()
        self._ids = CallIds(count=next_number(request.messages))
        self._calls = 0
        self._has_started = False
        self._has_unreadable = False
        self._is_over = False

    def feed(self, data: bytes) -> list[Event]:
        """The events these bytes complete."""
        if self._is_over:
            return []
        found = self._read(self._lines.feed(data))
        if self._lines.too_long and not self._is_over:
            self._is_over = True
            found.extend(self._unreadable(_BAD_END))
        return found

    def flush(self) -> list[Event]:
        """The events of a last line that was left without its end."""
        return [] if self._is_over else self._read(self._lines.flush(), bad_line=_BAD_END)

    def _unreadable(self, message: str) -> list[Event]:
        if self._has_unreadable:
            return []
        self._has_unreadable = True
        return [Failed(error=WireError(message=message, code=UNDECODABLE_STREAM))]

    def _read(self, lines: list[bytes], *, bad_line: str = _BAD_LINE) -> list[Event]:
        found: list[Event] = []
        for line in lines:
            if self._is_over:
                break
            found.extend(self._events(line, bad_line))
        return found

    def _events(self, line: bytes, bad_line: str) -> list[Event]:
        value = read_object(line.removeprefix(_BOM))
        if value is None:
            return self._unreadable(bad_line)
        error = find_error(value)
        if error is not None:
            self._is_over = True
            return [Failed(error=error)]
        found = self._start(value)
        for part in parts_of(value, self._ids):
            found.extend(self._part(part))
        if value.get("done") is True:
            self._is_over = True
            found.extend(_end(value))
        return found

    def _start(self, value: Object) -> list[Event]:
        model = text_in(value, "model")
        if self._has_started or model is None:
            return []
        self._has_started = True
        return [Started(model=model)]

    def _part(self, part: Part) -> list[Event]:
        match part:
            case Text():
                return [TextDelta(text=part.text)]
            case Reasoning():
                return [ReasoningDelta(text=part.text)]
            case ToolCall():
                index = self._calls
                self._calls += 1
                started = ToolCallStarted(index=index, id=part.id, name=part.name)
                if not part.arguments:
                    return [started]
                return [started, ToolCallDelta(index=index, arguments=part.arguments)]
            case _:
                return []  # an image in a stream has no event of its own


def _end(value: Object) -> list[Event]:
    reason, usage = text_in(value, "done_reason"), usage_of(value)
    found: list[Event] = [Finished(reason=reason)] if reason is not None else []
    if usage is not None:
        found.append(UsageSeen(usage=usage))
    return [*found, Ended()]
