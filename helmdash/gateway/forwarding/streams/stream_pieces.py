"""A stream as it is taken: its first event at once, and whatever comes in bulk when it is its turn.

A client waits for the first event; what follows it has been waited for already. With many streams
at once, one that comes faster than it is read would otherwise keep the loop for all its events
together, and every other client's first one waits for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from helmdash.doors.http.turns import Turns

# More than an event or two: what comes as fast as this waits for its turns.
_BULK_BYTES = 2 * 1024
# What is read, translated and written in one turn.
_TURN_BYTES = 4 * 1024


class StreamPieces:
    """The pieces of one stream, in order: `due(await next_piece())`, which joined are the stream.

    Two plain calls around what reads: a stream has hundreds of pieces, and most come by themselves.
    """

    __slots__ = ("_is_first", "_read", "_rest", "_turns", "_waits")

    def __init__(self, read: Callable[[], Awaitable[bytes]], turns: Turns) -> None:
        """read: gives what has come, and none at the end. turns: of all streams of the loop."""
        self._read = read
        self._turns = turns
        self._is_first = True
        self._waits = False
        self._rest = b""

    def next_piece(self) -> Awaitable[bytes]:
        """What is next; none at the end. Raises what `read` raises."""
        # While others wait, what comes in small pieces gathers meanwhile, and costs less.
        waits = self._waits or (self._turns.is_busy and not self._is_first)
        return self._in_turn() if waits else self._read()

    def due(self, data: bytes) -> bytes:
        """As much of what is next as may go now; the rest is next again."""
        if not self._is_first and len(data) <= _BULK_BYTES:
            return data
        size = _first_event(data) if self._is_first else _lines_of_a_turn(data)
        self._is_first = False
        # Behind the first event, too: it is on its way before more is read.
        self._waits = True
        self._rest = data[size:]
        return data[:size]

    async def _in_turn(self) -> bytes:
        await self._turns.mine()
        self._waits = False
        rest, self._rest = self._rest, b""
        return rest or await self._read()


def _lines_of_a_turn(data: bytes) -> int:
    """Where what is done in one turn ends: behind a line, if there is one."""
    if len(data) <= _TURN_BYTES:
        return len(data)
    return data.rfind(b"\n", 0, _TURN_BYTES) + 1 or _TURN_BYTES


def _first_event(data: bytes) -> int:
    """Where the first event ends, or else the first line, or else all that is here."""
    blank = data.find(b"\n\n")
    line = data.find(b"\n")
    if blank >= 0:
        return blank + 2
    return line + 1 or len(data)
