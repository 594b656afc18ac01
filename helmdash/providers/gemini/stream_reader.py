"""Reading Gemini's streams: server-sent events (`?alt=sse`) and one long JSON array.

Every chunk is a GenerateContentResponse with the new parts; nothing marks the end but the close.
Older models write a finish reason on every chunk, so the last one counts, and it is given when
the stream is over.
"""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.providers.gemini.errors import error_of, find_error
from helmdash.providers.gemini.json_array import ObjectDecoder
from helmdash.providers.gemini.parts import camel_members
from helmdash.providers.gemini.reply import finish_of, is_media, parts_of, usage_of
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.reported import text_in
from helmdash.providers.shared.sse import SseSplitter, parse_block
from helmdash.providers.shared.tool_ids import CallIds, next_number
from helmdash.providers.wire import (
    UNDECODABLE_STREAM,
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
    MediaSeen,
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

_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
# What some gateways before Gemini add, as OpenAI's streams have it.
_DONE = b"[DONE]"
_BAD_CHUNK = "A chunk of Gemini's stream is no JSON object."
_BAD_END = "Gemini's stream cannot be read from here on."


class GeminiStreamReader:
    """A Gemini stream to events, whichever of the two forms it has. Never raises.

    Nothing follows an error of Gemini's. A chunk that cannot be read is passed over and told once.
    """

    __slots__ = ("_chunks", "_form", "_has_unreadable", "_head", "_is_over")

    def __init__(self, *, request: ChatRequest) -> None:
        self._head = b""  # what came before the form was known
        self._form: _Events | _Objects | None = None
        self._chunks = _Chunks(next_number(request.messages))
        self._has_unreadable = False
        self._is_over = False

    def feed(self, data: bytes) -> list[Event]:
        """The events these bytes complete."""
        if self._is_over:
            return []
        if self._form is None:
            data = self._head + data
            self._form = _form_of(data)
            if self._form is None:
                self._head = data
                return []
        found = self._read(self._form.feed(data))
        if self._form.is_broken and not self._is_over:
            self._is_over = True
            found.extend(self._unreadable(_BAD_END))
        return found

    def flush(self) -> list[Event]:
        """What is left, and the finish reason: only the close makes it certain.

        A chunk that stops in the middle was cut off, and so was the reply.
        """
        if self._is_over:
            return []
        self._is_over = True
        rest = self._form.flush() if self._form is not None else []
        found: list[Event] = []
        for chunk in rest:
            events = self._chunks.read(chunk)
            if events is None:
                return [*found, *self._unreadable(_BAD_END)]
            found.extend(events)
            if events and isinstance(events[-1], Failed):
                return found
        return [*found, *self._chunks.end()]

    def _read(self, chunks: Iterable[bytes]) -> list[Event]:
        """Read chunks up to the first error of Gemini's."""
        found: list[Event] = []
        for chunk in chunks:
            events = self._chunks.read(chunk)
            if events is None:
                found.extend(self._unreadable(_BAD_CHUNK))
                continue
            found.extend(events)
            if events and isinstance(events[-1], Failed):
                self._is_over = True
                break
        return found

    def _unreadable(self, message: str) -> list[Event]:
        if self._has_unreadable:
            return []
        self._has_unreadable = True
        return [Failed(error=WireError(message=message, code=UNDECODABLE_STREAM))]


class _Events:
    """Chunks as server-sent events; an error between them may be plain JSON, without `data:`."""

    __slots__ = ("_is_first", "_splitter")

    def __init__(self) -> None:
        self._splitter = SseSplitter()
        self._is_first = True

    @property
    def is_broken(self) -> bool:
        """Whether nothing more is given."""
        return self._splitter.too_long

    def feed(self, data: bytes) -> list[bytes]:
        return self._parse(self._splitter.feed(data))

    def flush(self) -> list[bytes]:
        return self._parse(self._splitter.flush())

    def _parse(self, blocks: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for block in blocks:
            event = parse_block(block, at_start=self._is_first)
            self._is_first = False
            bare = block.strip(_BLANK)
            if event is not None:
                found.append(event.data)
            elif bare.startswith((b"{", b"[")):
                found.append(bare)
        return found


class _Objects:
    """Chunks as the objects of an array."""

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = ObjectDecoder()

    @property
    def is_broken(self) -> bool:
        """Whether nothing more is given."""
        return self._decoder.is_broken

    def feed(self, data: bytes) -> list[bytes]:
        return self._decoder.feed(data)

    def flush(self) -> list[bytes]:
        rest = self._decoder.flush()
        return [rest] if rest else []


def _form_of(head: bytes) -> _Events | _Objects | None:
    """Which form a stream has; None while only blanks (or half a byte order mark) have come."""
    if _BOM.startswith(head[:3]) and len(head) < len(_BOM):
        return None
    first = head.removeprefix(_BOM).lstrip(_BLANK)[:1]
    if not first:
        return None
    return _Objects() if first in b"[{" else _Events()


class _Chunks:
    """Chunks to events; remembers what is said once and what may still change."""

    __slots__ = ("_calls", "_finish", "_has_started", "_ids", "_usage")

    def __init__(self, calls_before: int) -> None:
        self._ids = CallIds(count=calls_before)
        self._calls = 0
        self._has_started = False
        self._finish: str | None = None
        self._usage: Object | None = None

    def read(self, data: bytes) -> list[Event] | None:
        """The events of one chunk, None if it cannot be read; an error is the last of them."""
        if data == _DONE:
            return []
        value = read_json(data)
        if value is None:
            return None
        error = find_error(value)
        if error is not None:
            return [Failed(error=error_of(error))]
        if not isinstance(value, dict):
            return None
        chunk = camel_members(value)
        found = self._start(chunk)
        for part in parts_of(chunk, self._ids):
            found.extend(self._events(part))
        self._finish = finish_of(chunk) or self._finish
        usage = usage_of(chunk)
        if usage is not None and usage != self._usage:
            self._usage = usage
            found.append(UsageSeen(usage=usage))
        return found

    def end(self) -> list[Event]:
        """The end of a stream that has said why it ended; one that was cut off has none."""
        return [Finished(reason=self._finish), Ended()] if self._finish is not None else []

    def _start(self, chunk: Object) -> list[Event]:
        reply_id, model = text_in(chunk, "responseId"), text_in(chunk, "modelVersion")
        if self._has_started or (reply_id is None and model is None):
            return []
        self._has_started = True
        return [Started(id=reply_id, model=model)]

    def _events(self, part: Part) -> list[Event]:
        match part:
            case Text():
                return [TextDelta(text=part.text)]
            case Reasoning():
                return [ReasoningDelta(text=part.text, signature=part.signature)]
            case ToolCall():
                index = self._calls
                self._calls += 1
                started = ToolCallStarted(index=index, id=part.id, name=part.name)
                if not part.arguments:
                    return [started]
                return [started, ToolCallDelta(index=index, arguments=part.arguments)]
            case _:
                return [MediaSeen()] if is_media(part) else []
