"""The events of a stream put together to one reply, for the record and for a caller that waits.

Bounded: of the text, the reasoning, the refusal and all tool calls at most LARGEST_KEPT_BYTES are
kept each, while `text_bytes` and `reasoning_bytes` go on counting, so that the record stays true.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import assert_never

from helmdash.providers.wire import (
    ContextEdited,
    Ended,
    Event,
    Failed,
    Finished,
    MediaSeen,
    Object,
    Part,
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

# More text than any model writes into one reply (128,000 tokens are about half a MiB).
LARGEST_KEPT_BYTES = 2 * 1024 * 1024
# A provider makes one or two; a stream of them is none.
MOST_EDITS = 16
# What an empty call takes up besides its words; it bounds their number too.
_CALL_BYTES = 256


class _Room:
    """Bytes that may still be kept; below 0 once something was not."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class _Kept:
    """Text, kept while there is room and counted beyond it."""

    __slots__ = ("_kept", "_room", "total_bytes")

    def __init__(self, room: _Room) -> None:
        self._kept = StringIO()
        self._room = room
        self.total_bytes = 0

    def add(self, text: str) -> None:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        self.total_bytes += size
        room = self._room
        if size > room.left:
            kept = text.encode("utf-8", "replace")[: max(0, room.left)]
            text = kept.decode("utf-8", "ignore")
        room.left -= size
        self._kept.write(text)

    @property
    def text(self) -> str:
        return self._kept.getvalue()


class _Call:
    __slots__ = ("arguments", "id", "name")

    def __init__(self, *, call_id: str, name: str, room: _Room) -> None:
        self.id = call_id
        self.name = name
        self.arguments = _Kept(room)


class Collector:
    """Takes events, one after the other, and gives the Reply they make. Never raises."""

    __slots__ = (
        "_calls",
        "_edits",
        "_error",
        "_finish",
        "_has_media",
        "_id",
        "_model",
        "_reasoning",
        "_refusal",
        "_rooms",
        "_signature",
        "_text",
        "_usage",
        "has_ended",
    )

    def __init__(self, *, largest_bytes: int = LARGEST_KEPT_BYTES) -> None:
        self.has_ended = False
        self._rooms = tuple(_Room(largest_bytes) for _ in range(4))
        self._calls: dict[int, _Call] = {}
        self._edits: tuple[Object, ...] = ()
        self._error: WireError | None = None
        self._finish: str | None = None
        self._has_media = False
        self._id: str | None = None
        self._model: str | None = None
        self._reasoning = _Kept(self._rooms[0])
        self._refusal = _Kept(self._rooms[1])
        self._signature: str | None = None
        self._text = _Kept(self._rooms[2])
        self._usage: Object | None = None

    def add(self, event: Event) -> None:
        """Events come in the order of the stream; texts beyond the room for them are counted, not
        kept."""
        match event:
            case TextDelta(text=text):
                self._text.add(text)
            case ReasoningDelta(text=text, signature=signature):
                self._reasoning.add(text)
                self._signature = signature or self._signature
            case ToolCallStarted():
                self._start_call(event)
            case ToolCallDelta(index=index, arguments=arguments):
                self._add_arguments(index, arguments)
            case RefusalDelta(text=text):
                self._refusal.add(text)
            case Started(id=reply_id, model=model):
                self._id = self._id or reply_id
                self._model = self._model or model
            case Finished(reason=reason):
                self._finish = reason
            case UsageSeen(usage=usage):
                self._usage = usage
            case MediaSeen():
                self._has_media = True
            case ContextEdited(edits=edits):
                self._edits = (*self._edits, *edits)[:MOST_EDITS]
            case Failed(error=error):
                self._error = self._error or error
            case Ended():
                self.has_ended = True
            case _:
                assert_never(event)

    def add_all(self, events: Iterable[Event]) -> None:
        """As `add`, one after the other."""
        for event in events:
            self.add(event)

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of all visible text that came, kept or not."""
        return self._text.total_bytes

    @property
    def reasoning_bytes(self) -> int:
        """UTF-8 bytes of all reasoning that came, kept or not."""
        return self._reasoning.total_bytes

    @property
    def has_visible(self) -> bool:
        """Whether any text, tool call, refusal, picture or speech has come yet."""
        has_text = self._text.total_bytes or self._refusal.total_bytes
        return bool(has_text or self._calls or self._has_media)

    @property
    def has_reasoning(self) -> bool:
        """Whether any reasoning has come yet."""
        return bool(self._reasoning.total_bytes)

    @property
    def is_cut(self) -> bool:
        """Whether more came than was kept."""
        return any(room.left < 0 for room in self._rooms)

    @property
    def finish_reason(self) -> str | None:
        """The vendor's finish reason; None: it has not come."""
        return self._finish

    @property
    def usage(self) -> Object | None:
        """The latest usage report; None: none has come."""
        return self._usage

    @property
    def error(self) -> WireError | None:
        """The first error; None: none has come."""
        return self._error

    def reply(self) -> Reply:
        """What has come so far: reasoning, text, tool calls, in that order."""
        return Reply(
            id=self._id,
            model=self._model,
            parts=self._parts(),
            refusal=self._refusal.text or None,
            finish_reason=self._finish,
            usage=self._usage,
            error=self._error,
            context_edits=self._edits,
            has_media=self._has_media or None,
        )

    def _parts(self) -> tuple[Part, ...]:
        parts: list[Part] = []
        if self._reasoning.total_bytes or self._signature:
            parts.append(Reasoning(text=self._reasoning.text, signature=self._signature))
        if self._text.total_bytes:
            parts.append(Text(text=self._text.text))
        parts += (
            ToolCall(id=call.id, name=call.name, arguments=call.arguments.text)
            for _, call in sorted(self._calls.items())
        )
        return tuple(parts)

    def _start_call(self, event: ToolCallStarted) -> None:
        room = self._rooms[3]
        if event.index in self._calls:
            return
        room.left -= len(event.id) + len(event.name) + _CALL_BYTES
        if room.left >= 0 or not self._calls:
            self._calls[event.index] = _Call(call_id=event.id, name=event.name, room=room)

    def _add_arguments(self, index: int, arguments: str) -> None:
        call = self._calls.get(index)
        if call is not None:
            call.arguments.add(arguments)


def collect(events: Iterable[Event]) -> Reply:
    """The reply that these events make."""
    collector = Collector()
    collector.add_all(events)
    return collector.reply()


def events_of(reply: Reply) -> list[Event]:
    """A whole reply as the events of a stream that says the same.

    Without a finish reason nobody knows that it is whole: then no Ended is given, from which a
    client would be told that the model had stopped.
    """
    events: list[Event] = []
    if reply.id is not None or reply.model is not None:
        events.append(Started(id=reply.id, model=reply.model))
    for part in reply.parts:
        if isinstance(part, Reasoning):
            events.append(ReasoningDelta(text=part.text, signature=part.signature))
        elif isinstance(part, Text):
            events.append(TextDelta(text=part.text))
    if reply.has_media:
        events.append(MediaSeen())
    for index, call in enumerate(reply.tool_calls):
        events.append(ToolCallStarted(index=index, id=call.id, name=call.name))
        events.append(ToolCallDelta(index=index, arguments=call.arguments))
    if reply.refusal is not None:
        events.append(RefusalDelta(text=reply.refusal))
    if reply.finish_reason is not None:
        events.append(Finished(reason=reply.finish_reason))
    if reply.usage is not None:
        events.append(UsageSeen(usage=reply.usage))
    if reply.context_edits:
        events.append(ContextEdited(edits=reply.context_edits))
    if reply.error is not None:
        events.append(Failed(error=reply.error))
    elif reply.finish_reason is not None:
        events.append(Ended())
    return events
