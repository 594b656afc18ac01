"""Tool calls out of the deltas of an OpenAI-shaped stream, however the vendor numbers them.

OpenAI numbers its calls and gives the id and the name once. Others repeat the id in each delta,
give every call of a turn the index 0 (Google), leave the index out (some local servers), leave
the id out, or send the arguments as an object.
"""

from __future__ import annotations

from helmdash.providers.shared.tool_ids import arguments_text
from helmdash.providers.wire import Event, Json, Object, ToolCallDelta, ToolCallStarted

# A turn with more calls is no turn; the rest is not kept, so that a stream cannot fill the memory.
_MOST_CALLS = 4096


class _Call:
    """One call under way. It is started once its name, or something of its arguments, came."""

    __slots__ = ("id", "index", "is_started", "key", "name")

    def __init__(self, index: int, key: Json) -> None:
        self.index = index
        self.key = key
        self.id = ""
        self.name = ""
        self.is_started = False


class ToolCalls:
    """The calls of one reply, in the order they started."""

    __slots__ = ("_by_id", "_by_key", "_latest")

    def __init__(self) -> None:
        self._by_key: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._latest: _Call | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def read(self, deltas: Json, events: list[Event], *, reply_id: str | None) -> None:
        """Add the events of a delta's `tool_calls`. reply_id None: not told, so ids that are
        missing are made without it. Never raises."""
        for delta in deltas if isinstance(deltas, list) else ():
            if isinstance(delta, dict):
                function = delta.get("function")
                self._read(delta, function if isinstance(function, dict) else {}, events, reply_id)

    def read_legacy(self, function: Json, events: list[Event], *, reply_id: str | None) -> None:
        """As `read`, for a delta's `function_call`, from before there were tools. Never raises.
        reply_id None: not told."""
        if isinstance(function, dict):
            self._read({"index": 0}, function, events, reply_id)

    def _read(
        self, delta: Object, function: Object, events: list[Event], reply_id: str | None
    ) -> None:
        call_id = delta.get("id")
        name = function.get("name")
        call = self._find(
            delta.get("index"),
            call_id if isinstance(call_id, str) else "",
            has_name=isinstance(name, str) and bool(name),
        )
        if call is None:
            return
        self._latest = call
        if isinstance(name, str) and not call.is_started:
            call.name += name
        arguments = arguments_text(function.get("arguments"))
        if not call.is_started and (call.name or arguments):
            self._start(call, events, reply_id)
        if arguments:
            events.append(ToolCallDelta(index=call.index, arguments=arguments))

    def _find(self, key: Json, call_id: str, *, has_name: bool) -> _Call | None:
        """The call a delta goes on with, or a new one."""
        known = self._by_id.get(call_id) if call_id else None
        if known is not None:
            return known
        if isinstance(key, int):
            known = self._by_key.get(key)
            is_another = known is not None and known.id and call_id and has_name
        else:
            known = self._latest
            is_another = known is not None and (bool(call_id) or (has_name and known.is_started))
        if known is None or is_another:
            return self._new(key, call_id)
        if call_id and not known.id:
            known.id = call_id
        return known

    def _new(self, key: Json, call_id: str) -> _Call | None:
        index = len(self._by_id)
        if index >= _MOST_CALLS:
            return None
        call = _Call(index, key)
        call.id = call_id
        self._by_id[call_id or f"\0{index}"] = call
        if isinstance(key, int):
            self._by_key[key] = call
        return call

    def _start(self, call: _Call, events: list[Event], reply_id: str | None) -> None:
        call.is_started = True
        call.id = call.id or f"call_{reply_id or 'reply'}_{call.index}"
        events.append(ToolCallStarted(index=call.index, id=call.id, name=call.name))
