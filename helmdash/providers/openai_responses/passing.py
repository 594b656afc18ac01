"""A Responses stream on its way to a client of the same API: every byte goes on as it came."""

from __future__ import annotations

from helmdash.providers.openai_responses.stream_reader import ResponsesStreamReader
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import Event, WireError


class ResponsesPassThrough:
    """See protocols.PassThrough."""

    def __init__(self) -> None:
        self._reader = ResponsesStreamReader()

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The same bytes, and their events."""
        return data, self._reader.feed(data)

    def flush(self) -> tuple[bytes, list[Event]]:
        """No bytes: all were handed on as they came."""
        return b"", self._reader.flush()

    def fail(self, error: WireError) -> bytes:
        """An `error` event, numbered after what passed. It begins with a blank line, for the
        upstream may have stopped within an event."""
        told = {
            "type": "error",
            "code": error.code,
            "message": error.message,
            "param": None,
            "sequence_number": self._reader.latest_number + 1,
        }
        return b"\n\nevent: error\ndata: " + to_json(told) + b"\n\n"
