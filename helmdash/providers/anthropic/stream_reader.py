"""The Messages stream, read (platform.claude.com/docs/en/build-with-claude/streaming).

Events no reader knows, blocks of server tools, citations and pings pass unseen, as the vendor's
versioning policy asks. A body that is plain JSON instead of a stream (an error behind a 200, or a
server that does not stream) gives the same events as far as it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helmdash.core.text.jsontext import TooDeep
from helmdash.providers.anthropic.abilities.json_mode import (
    TextBesideJson,
    has_json_tool,
    json_tool_in,
)
from helmdash.providers.anthropic.context_edits import applied_edits, compactions_in
from helmdash.providers.anthropic.errors import error_of
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.anthropic.outcomes import refusal_of
from helmdash.providers.anthropic.reply import is_unasked_tool_end
from helmdash.providers.anthropic.unstreamed import begins_like_json, read_unstreamed
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.reported import text_in
from helmdash.providers.shared.sse import LARGEST_EVENT_BYTES, SseDecoder, SseEvent
from helmdash.providers.wire import (
    UNDECODABLE_STREAM,
    ChatRequest,
    ContextEdited,
    Ended,
    Event,
    Failed,
    Finished,
    Json,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)

_DONE = b"[DONE]"  # OpenAI's end mark, which some servers send in every format


@dataclass(slots=True)
class _Block:
    """A content block that is open. `call` is its number among the tool calls."""

    kind: str
    call: int | None = None
    is_json_reply: bool = False
    input: Json = None
    has_input: bool = False


class AnthropicStreamReader:
    """Bytes of a Messages stream to events; the same events however the bytes are split.

    Nothing follows an error of the vendor's or the end. An event that cannot be read is passed
    over and told once.
    """

    def __init__(self, *, request: ChatRequest) -> None:
        self._request = request
        self._json_tool = json_tool_in(request)
        self._sse = SseDecoder()
        self._beginning = bytearray()  # until it is known what comes; all of a body that is JSON
        self._is_json: bool | None = None
        self._is_over = False
        self._has_started = False
        self._has_unreadable = False
        self._text = TextBesideJson(waits=self._json_tool is not None)
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._usage: dict[str, Any] = {}

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._is_over:
            return []
        if self._is_json is None:
            self._beginning += data
            self._is_json = begins_like_json(self._beginning)
            if self._is_json is False:
                data, self._beginning = bytes(self._beginning), bytearray()
        elif self._is_json:
            self._beginning += data
        if self._is_json is False:
            return self._read(self._sse.feed(data))
        if len(self._beginning) > LARGEST_EVENT_BYTES:
            return self._give_up("A body larger than any event came instead of a stream.")
        return []

    def flush(self) -> list[Event]:
        """The events of what is left when the upstream has closed."""
        if self._is_over:
            return []
        if self._is_json is False:
            found = self._read(self._sse.flush())
            return [*found, *self._text.release()]
        self._is_over = True
        return read_unstreamed(bytes(self._beginning), request=self._request)

    def _read(self, events: list[SseEvent]) -> list[Event]:
        found: list[Event] = []
        for event in events:
            if self._is_over:
                break
            found += self._read_event(event)
        if self._sse.too_long and not self._is_over:
            found += self._give_up("An event is too large to be read.")
        return found

    def _read_event(self, event: SseEvent) -> list[Event]:
        if event.data.strip() == _DONE:
            return self._end()
        data = read_json(event.data)
        if not isinstance(data, dict):
            if event.event == "ping":
                return []
            return self._unreadable("An event of the stream holds no JSON object.")
        kind = data.get("type", event.event)
        if kind == "error" or event.event == "error":
            return self._fail_with(data)
        read = self._READERS.get(kind) if isinstance(kind, str) else None
        return list(read(self, data)) if read else []

    def _fail_with(self, data: dict[str, Json]) -> list[Event]:
        self._is_over = True
        error = error_of(data) or error_of({"error": data})
        return [*self._text.release(), *([Failed(error=error)] if error else [])]

    def _give_up(self, message: str) -> list[Event]:
        self._is_over = True
        self._beginning.clear()
        return [*self._text.release(), *self._unreadable(message)]

    def _unreadable(self, message: str) -> list[Event]:
        if self._has_unreadable:
            return []
        self._has_unreadable = True
        return [Failed(error=WireError(message=message, code=UNDECODABLE_STREAM))]

    def _end(self) -> list[Event]:
        self._is_over = True
        return [*self._text.release(), Ended()]

    def _message_start(self, data: dict[str, Json]) -> list[Event]:
        message = data.get("message")
        if not isinstance(message, dict) or self._has_started:
            return []
        self._has_started = True
        started = Started(id=text_in(message, "id"), model=text_in(message, "model"))
        came: list[Event] = [started]
        if self._json_tool is not None and not has_json_tool(self._request, model=started.model):
            came += self._text.release()
        usage = message.get("usage")
        if not isinstance(usage, dict):
            return came
        # Its output_tokens are those of the first moment: a stream that breaks off must not be
        # recorded as if that had been all.
        self._usage = {name: value for name, value in usage.items() if name != "output_tokens"}
        return [*came, UsageSeen(usage=dict(self._usage))]

    def _block_start(self, data: dict[str, Json]) -> list[Event]:
        index, content = data.get("index"), data.get("content_block")
        if not isinstance(index, int) or not isinstance(content, dict):
            return []
        block = _Block(kind=text_in(content, "type") or "")
        self._blocks[index] = block
        if block.kind == "tool_use":
            return self._call_start(block, content)
        compactions = tuple(compactions_in([content]))
        if compactions:
            return [ContextEdited(edits=compactions)]
        return self._deltas(block.kind, content)

    def _call_start(self, block: _Block, content: dict[str, Json]) -> list[Event]:
        name = text_in(content, "name") or ""
        block.input = content.get("input")
        if self._json_tool is not None and name == self._json_tool:
            block.is_json_reply = True
            self._text.drop()
            return []
        block.call = self._calls
        self._calls += 1
        started = ToolCallStarted(index=block.call, id=text_in(content, "id") or "", name=name)
        return [*self._text.release(), started]

    def _block_delta(self, data: dict[str, Json]) -> list[Event]:
        delta, index = data.get("delta"), data.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if not isinstance(delta, dict):
            return []
        match delta.get("type"):
            case "text_delta":
                return self._deltas("text", delta)
            case "thinking_delta" | "signature_delta":
                return self._deltas("thinking", delta)
            case "input_json_delta" if block is not None:
                return self._arguments(block, text_in(delta, "partial_json") or "")
            case _:
                return []

    def _deltas(self, kind: str, content: dict[str, Json]) -> list[Event]:
        """Text or thinking in a delta, or in the start of a block that does not begin empty."""
        if kind == "text":
            text = text_in(content, "text")
            return self._text.add(text) if text else []
        if kind == "thinking":
            thought, seal = text_in(content, "thinking"), text_in(content, "signature")
            return [ReasoningDelta(text=thought or "", signature=seal)] if thought or seal else []
        return []

    def _block_stop(self, data: dict[str, Json]) -> list[Event]:
        """A call without deltas had its whole input at its start, which is mostly {}."""
        index = data.get("index")
        block = self._blocks.pop(index, None) if isinstance(index, int) else None
        if block is None or block.has_input or block.kind != "tool_use":
            return []
        whole = block.input if isinstance(block.input, dict) else {}
        try:
            text = to_json(whole).decode()
        except TooDeep:
            return self._unreadable("The arguments of a tool are nested too deeply.")
        return self._arguments(block, text)

    def _arguments(self, block: _Block, text: str) -> list[Event]:
        if not text:
            return []
        block.has_input = True
        if block.is_json_reply:
            return [TextDelta(text=text)]
        return [] if block.call is None else [ToolCallDelta(index=block.call, arguments=text)]

    def _message_delta(self, data: dict[str, Json]) -> list[Event]:
        events: list[Event] = []
        usage = data.get("usage")
        if isinstance(usage, dict):
            # Cumulative; what is left out or null keeps the value it had.
            self._usage.update({k: value for k, value in usage.items() if value is not None})
            events.append(UsageSeen(usage=dict(self._usage)))
        edits = applied_edits(data.get("context_management"))
        if edits:
            events.append(ContextEdited(edits=edits))
        delta = data.get("delta")
        if not isinstance(delta, dict):
            return events
        refusal = refusal_of(delta.get("stop_details"))
        if refusal is not None:
            events.append(RefusalDelta(text=refusal))
        reason = text_in(delta, "stop_reason")
        if reason is not None:
            is_unasked = is_unasked_tool_end(
                reason, json_tool=self._json_tool, has_calls=self._calls > 0
            )
            events += self._text.release()
            events.append(Finished(reason="end_turn" if is_unasked else reason))
        return events

    def _message_stop(self, data: dict[str, Json]) -> list[Event]:
        return self._end()

    _READERS: dict[str, Callable[[AnthropicStreamReader, dict[str, Json]], list[Event]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
    }
