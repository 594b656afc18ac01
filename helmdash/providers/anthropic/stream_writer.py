"""The Messages stream, written (platform.claude.com/docs/en/build-with-claude/streaming).

Blocks follow each other, one open at a time: a delta of another kind closes the block before it.
Only a tool call whose arguments are no complete JSON yet stays open; what comes mixed with it
waits in a queue, so that every delta lands in its own block.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from helmdash.providers.anthropic.errors import error_event
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.anthropic.outcomes import (
    message_id,
    stop_details_of,
    stop_reason_of,
    usage_of,
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
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)


@dataclass(slots=True, eq=False)
class _Block:
    """A content block: open on the wire, or waiting with the deltas it has so far."""

    start: dict[str, Json]
    call: int | None = None
    deltas: list[dict[str, Json]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    is_sealed: bool = False  # a thought that has its signature

    @property
    def kind(self) -> str:
        return str(self.start["type"])

    def is_done(self) -> bool:
        """Whether the next block may begin: only a tool call may have to go on."""
        if self.call is None:
            return True
        try:
            orjson.loads("".join(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


class AnthropicStreamWriter:
    """Events to the bytes of a Messages stream. The end waits for usage, which comes last."""

    def __init__(self, *, answer: ReplyContext) -> None:
        self._answer = answer
        self._has_started = False
        self._is_over = False
        self._index = -1  # of the block that was opened last
        self._open: _Block | None = None
        self._waiting: deque[_Block] = deque()
        self._has_calls = False
        self._reason: str | None = None
        self._refusal: str | None = None
        self._usage: Object | None = None

    def write(self, event: Event) -> bytes:
        """The bytes for one event; often none."""
        if self._is_over:
            return b""
        match event:
            case Started():
                return self._start(event.id)
            case TextDelta():
                return self._text(event.text)
            case ReasoningDelta():
                return self._thought(event)
            case ToolCallStarted():
                return self._call(event)
            case ToolCallDelta():
                return self._arguments(event)
            case RefusalDelta():
                self._refusal = (self._refusal or "") + event.text
            case Finished():
                self._reason = event.reason
            case UsageSeen():
                self._usage = event.usage
            case Failed():
                return self._fail(event.error)
            case Ended():
                return self._end()
        return b""

    def close(self) -> bytes:
        """What a client needs to see a sound end, if it has not come yet."""
        return b"" if self._is_over else self._end()

    # --- the frame

    def _start(self, identifier: str | None = None) -> bytes:
        if self._has_started:
            return b""
        self._has_started = True
        message: dict[str, Json] = {
            "id": message_id(identifier, self._answer.call_id),
            "type": "message",
            "role": "assistant",
            "model": self._answer.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_of(self._usage),
        }
        return _sse({"type": "message_start", "message": message}) + _sse({"type": "ping"})

    def _end(self) -> bytes:
        written = self._start() + self._close_block()
        while self._waiting:
            written += self._open_block(self._waiting.popleft()) + self._close_block()
        self._is_over = True
        reason = stop_reason_of(
            self._reason, has_calls=self._has_calls, has_refusal=self._refusal is not None
        )
        delta: dict[str, Json] = {"stop_reason": reason, "stop_sequence": None}
        if self._refusal is not None:
            delta["stop_details"] = stop_details_of(self._refusal)
        end = {"type": "message_delta", "delta": delta, "usage": usage_of(self._usage)}
        return written + _sse(end) + _sse({"type": "message_stop"})

    def _fail(self, error: WireError) -> bytes:
        self._is_over = True
        return _sse(error_event(error))

    # --- deltas

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        start = {"type": "text", "text": ""}
        return self._delta(self._latest(start), {"type": "text_delta", "text": text})

    def _thought(self, event: ReasoningDelta) -> bytes:
        start = {"type": "thinking", "thinking": "", "signature": ""}
        written = b""
        if event.text:
            delta = {"type": "thinking_delta", "thinking": event.text}
            written = self._delta(self._latest(start), delta)
        if event.signature:
            block = self._latest(start)
            delta = {"type": "signature_delta", "signature": event.signature}
            written += self._delta(block, delta)
            block.is_sealed = True  # what the model thinks next is another thought
        return written

    def _call(self, event: ToolCallStarted) -> bytes:
        if self._block_of_call(event.index) is not None:
            return b""
        self._has_calls = True
        start = {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
        return self._begin(_Block(start=start, call=event.index))

    def _arguments(self, event: ToolCallDelta) -> bytes:
        block = self._block_of_call(event.index)
        if block is None or not event.arguments:
            return b""
        block.arguments.append(event.arguments)
        written = self._delta(block, {"type": "input_json_delta", "partial_json": event.arguments})
        return written + self._go_on()

    def _delta(self, block: _Block, delta: dict[str, Json]) -> bytes:
        if block is self._open:
            return self._block_event("content_block_delta", delta=delta)
        block.deltas.append(delta)
        return b"" if block in self._waiting else self._begin(block)

    # --- blocks

    def _latest(self, start: dict[str, Json]) -> _Block:
        """The last block if it is of that kind and takes more; else a new one."""
        latest = self._waiting[-1] if self._waiting else self._open
        if latest is not None and latest.kind == start["type"] and not latest.is_sealed:
            return latest
        return _Block(start=start)

    def _block_of_call(self, call: int) -> _Block | None:
        if self._open is not None and self._open.call == call:
            return self._open
        return next((block for block in self._waiting if block.call == call), None)

    def _begin(self, block: _Block) -> bytes:
        """Open a block, or let it wait for the one that is open."""
        if self._open is not None and not self._open.is_done():
            self._waiting.append(block)
            return b""
        return self._start() + self._close_block() + self._open_block(block)

    def _go_on(self) -> bytes:
        """Open what waited for a tool call that is complete now."""
        written = b""
        while self._waiting and self._open is not None and self._open.is_done():
            written += self._close_block() + self._open_block(self._waiting.popleft())
        return written

    def _open_block(self, block: _Block) -> bytes:
        self._index += 1
        self._open = block
        written = self._block_event("content_block_start", content_block=block.start)
        for delta in block.deltas:
            written += self._block_event("content_block_delta", delta=delta)
        block.deltas.clear()
        return written

    def _close_block(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._block_event("content_block_stop")

    def _block_event(self, kind: str, **members: Any) -> bytes:
        return _sse({"type": kind, "index": self._index, **members})


def _sse(data: dict[str, Json]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), to_json(data))
