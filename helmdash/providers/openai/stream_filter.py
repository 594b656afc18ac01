"""An OpenAI-shaped stream on its way to an OpenAI-shaped client: read and handed on in one pass.

Every stream is made to report usage; a client that did not ask for it must not see it. What is
hidden is exactly that: a chunk that holds nothing but usage, and the member `usage` of any other.
All other bytes are the upstream's own.
"""

from __future__ import annotations

from helmdash.providers.openai.stream_reader import TOO_LONG, BlockReader
from helmdash.providers.shared.bodies import to_json, without_members
from helmdash.providers.shared.sse import SseSplitter
from helmdash.providers.wire import Event, Object, WireError

# How vendors say that there is no usage yet, in nearly every chunk.
_NULL_USAGE = (b',"usage":null', b', "usage": null')


class OpenAIStreamFilter:
    """A PassThrough of the OpenAI format. Never raises.

    With `hide_usage` the bytes of an event are held back until it is complete; without, all bytes
    go on at once. An event that is too long (sse) goes on as it is, like all that follow it.
    """

    __slots__ = ("_blocks", "_hide_usage", "_splitter")

    def __init__(self, *, hide_usage: bool) -> None:
        self._blocks = BlockReader()
        self._hide_usage = hide_usage
        self._splitter = SseSplitter()

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The bytes to hand on now, and the events these bytes complete."""
        if self._splitter.too_long:
            return data, []
        shown, events = self._read(self._splitter.feed(data))
        return (shown if self._hide_usage else data), events

    def flush(self) -> tuple[bytes, list[Event]]:
        """What is left of both when the upstream has closed."""
        shown, events = self._read(self._splitter.flush())
        return (shown if self._hide_usage else b""), events

    def fail(self, error: WireError) -> bytes | None:
        """None: an error is worded alike wherever it comes."""
        return None

    def _read(self, blocks: list[bytes]) -> tuple[bytes, list[Event]]:
        events: list[Event] = []
        if len(blocks) == 1 and not self._splitter.too_long:
            return self._read_block(blocks[0], events), events
        shown = [self._read_block(block, events) for block in blocks]
        if self._splitter.too_long:
            shown += self._splitter.flush()
            self._blocks.fail(TOO_LONG, events)
        return b"".join(shown), events

    def _read_block(self, block: bytes, events: list[Event]) -> bytes:
        """Add the events of a block; what the client may see of it comes back."""
        data, chunk = self._blocks.read(block, events)
        if not self._hide_usage or chunk is None or "usage" not in chunk:
            return block
        return _without_usage(block, data, chunk)


def _without_usage(block: bytes, data: bytes, chunk: Object) -> bytes:
    # Quotes inside a string are escaped: said once, the name can only be the chunk's own member.
    if chunk["usage"] is None and block.count(b'"usage"') == 1:
        for said in _NULL_USAGE:
            if said in block:
                return block.replace(said, b"", 1)
    if chunk["usage"] is not None and not chunk.get("choices") and "error" not in chunk:
        return b""
    kept = without_members(data, ("usage",))
    start = block.find(data)
    if kept is None or start < 0:
        rest = {name: value for name, value in chunk.items() if name != "usage"}
        return b"data: " + to_json(rest) + b"\n\n"
    return block[:start] + kept + block[start + len(data) :]
