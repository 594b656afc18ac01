"""Streams of the Responses API, read.

https://platform.openai.com/docs/api-reference/responses-streaming: named events with a number each;
usage and the reason of the end are in the last one, which holds the whole response. Servers leave
out deltas: an item that was not streamed is read when it is done.
"""

from __future__ import annotations

from helmdash.providers.openai_responses.errors import error_in_response, error_of_event
from helmdash.providers.openai_responses.items.calls import call_of, is_call
from helmdash.providers.openai_responses.items.reasoning import reasoning_of
from helmdash.providers.openai_responses.reply import finish_reason, is_picture, reply_of
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.shared.reported import object_in, objects_in, text_in
from helmdash.providers.shared.sse import LARGEST_EVENT_BYTES, SseDecoder, SseEvent
from helmdash.providers.wire import (
    UNDECODABLE_STREAM,
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
    WireError,
)

_DONE = b"[DONE]"  # some servers end every stream so
_TEXT = "response.output_text.delta"
_REFUSAL = "response.refusal.delta"
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_DELTAS = frozenset({_TEXT, _REFUSAL, *_THOUGHTS})
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
# More items than any response has; beyond them calls are counted no more.
_MOST_ITEMS = 1_000


class ResponsesStreamReader:
    """Bytes of a stream to events; the same however they are split. Never raises."""

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._beginning: bytearray | None = bytearray()  # None: what came are events
        self._is_over = False
        self._has_failed = False
        self._has_started = False
        self._streamed: set[int] = set()  # items of which a delta was seen, by their number
        self._calls: dict[int, int] = {}  # number of an item -> number of the call
        self.response_id: str | None = None
        self.latest_number = -1

    def feed(self, data: bytes) -> list[Event]:
        """The events these bytes complete."""
        if self._is_over:
            return []
        if self._beginning is not None:
            self._beginning += data
            if not self._beginning.lstrip():
                return []
            if self._beginning.lstrip().startswith((b"{", b"[")):
                return self._outgrown()
            data, self._beginning = bytes(self._beginning), None
        return self._read(self._sse.feed(data))

    def flush(self) -> list[Event]:
        """The events of what is left when the upstream has closed."""
        if self._is_over:
            return []
        if self._beginning is None:
            return self._read(self._sse.flush())
        self._is_over = True
        body = read_json(bytes(self._beginning))
        return events_of(reply_of(body)) if isinstance(body, dict) else []

    def _outgrown(self) -> list[Event]:
        """A server that does not stream answers with one body; it may be so large."""
        events: list[Event] = []
        if len(self._beginning or b"") > LARGEST_EVENT_BYTES:
            self._is_over = True
            self._fail("A body larger than any event came instead of a stream.", events)
        return events

    def _read(self, blocks: list[SseEvent]) -> list[Event]:
        events: list[Event] = []
        for block in blocks:
            if self._is_over:
                break
            self._read_block(block.data, events)
        if self._sse.too_long and not self._is_over:
            self._is_over = True
            self._fail("An event of the stream is too long.", events)
        return events

    def _read_block(self, data: bytes, events: list[Event]) -> None:
        if data.strip() in (b"", _DONE):
            return
        event = read_json(data)
        if not isinstance(event, dict):
            self._fail("An event of the stream is not a JSON object.", events)
            return
        number = event.get("sequence_number")
        if isinstance(number, int):
            self.latest_number = number
        self._read_event(event, events)

    def _read_event(self, event: Object, events: list[Event]) -> None:
        kind = event.get("type")
        if kind in _DELTAS:
            self._read_delta(str(kind), event, events)
        elif kind == "response.function_call_arguments.delta":
            self._read_arguments(event, events)
        elif kind == "response.output_item.added":
            self._read_added(event, events)
        elif kind == "response.output_item.done":
            self._read_done(event, events)
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            self._start(object_in(event, "response") or {}, events)
        elif kind in _ENDS:
            self._end(object_in(event, "response") or {}, str(kind), events)
        elif kind == "error" or "error" in event:
            events.append(Failed(error=error_of_event(event)))

    def _start(self, response: Object, events: list[Event]) -> None:
        if not self._has_started:
            self._has_started = True
            self.response_id = text_in(response, "id")
            events.append(Started(id=self.response_id, model=text_in(response, "model")))

    def _read_delta(self, kind: str, event: Object, events: list[Event]) -> None:
        text = event.get("delta")
        if not isinstance(text, str) or not text:
            return
        self._streamed.add(_number(event))
        if kind == _TEXT:
            events.append(TextDelta(text=text))
        elif kind == _REFUSAL:
            events.append(RefusalDelta(text=text))
        else:
            events.append(ReasoningDelta(text=text))

    def _read_arguments(self, event: Object, events: list[Event]) -> None:
        call, text = self._calls.get(_number(event)), event.get("delta")
        if call is not None and isinstance(text, str) and text:
            self._streamed.add(_number(event))
            events.append(ToolCallDelta(index=call, arguments=text))

    def _read_added(self, event: Object, events: list[Event]) -> None:
        """The deltas of functions follow; what other tools are given is read when it is whole."""
        item = object_in(event, "item") or {}
        if item.get("type") == "function_call":
            self._start_call(_number(event), item, events)

    def _start_call(self, number: int, item: Object, events: list[Event]) -> int | None:
        known = self._calls.get(number)
        call = call_of(item)
        if known is not None or call is None or len(self._calls) >= _MOST_ITEMS:
            return known
        index = self._calls[number] = len(self._calls)
        events.append(ToolCallStarted(index=index, id=call.id, name=call.name))
        return index

    def _read_done(self, event: Object, events: list[Event]) -> None:
        item, number = object_in(event, "item") or {}, _number(event)
        kind = item.get("type")
        if is_call(kind):
            index = self._start_call(number, item, events)
            call = call_of(item)
            if index is not None and call is not None and number not in self._streamed:
                events.append(ToolCallDelta(index=index, arguments=call.arguments))
        elif kind == "message" and number not in self._streamed:
            for part in objects_in(item, "content"):
                if text := text_in(part, "text"):
                    events.append(TextDelta(text=text))
                if text := text_in(part, "refusal"):
                    events.append(RefusalDelta(text=text))
        elif kind == "reasoning":
            self._read_thoughts(item, number, events)
        elif is_picture(item):
            events.append(MediaSeen())
        self._streamed.add(number)

    def _read_thoughts(self, item: Object, number: int, events: list[Event]) -> None:
        """The seal comes with the whole item, the text before it."""
        found = reasoning_of(item)
        text = "" if number in self._streamed else found.text
        if text or found.signature is not None:
            events.append(ReasoningDelta(text=text, signature=found.signature))

    def _end(self, response: Object, kind: str, events: list[Event]) -> None:
        self._is_over = True
        self._start(response, events)
        if not self._streamed:
            # Nothing was streamed: all of it is here.
            whole = events_of(reply_of(response))
            events += [each for each in whole if not isinstance(each, Started | Ended | Failed)]
        else:
            self._add_end(response, events)
        error = error_in_response(response)
        if error is None and kind == "response.failed":
            error = error_of_event(event={})
        if error is not None:
            events.append(Failed(error=error))
        events.append(Ended())

    def _add_end(self, response: Object, events: list[Event]) -> None:
        reason, usage = finish_reason(response), object_in(response, "usage")
        if reason is not None:
            events.append(Finished(reason=reason))
        if usage is not None:
            events.append(UsageSeen(usage=usage))

    def _fail(self, message: str, events: list[Event]) -> None:
        if not self._has_failed:
            self._has_failed = True
            events.append(Failed(error=WireError(message=message, code=UNDECODABLE_STREAM)))


def _number(event: Object) -> int:
    """The number of the item that an event is about; -1 where it says none."""
    number: Json = event.get("output_index")
    return number if isinstance(number, int) else -1
