"""From an upstream's stream to a client's: handed on as it is, or translated event by event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from helmdash.providers import ollama
from helmdash.providers.ollama.context_array import ContextDropper
from helmdash.providers.protocols import ClientFormat, PassThrough, StreamReader, StreamWriter
from helmdash.providers.wire import UNDECODABLE_STREAM, ChatRequest, Event, Failed, WireError

# What separates events, by the kind of stream, and how one that is over may end.
_GAPS = {
    "text/event-stream": (b"\n\n", (b"\n\n", b"\r\n\r\n", b"\r\r")),
    "application/x-ndjson": (b"\n", (b"\n",)),
}


class Pipe(Protocol):
    """Bytes in; bytes for the client and events for the record out."""

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]: ...

    def flush(self) -> tuple[bytes, list[Event]]: ...

    def fail(self, error: WireError) -> bytes:
        """What the client is told when the upstream breaks off."""


def native_pipe(client: ClientFormat, request: ChatRequest, writer: StreamWriter) -> Pipe:
    """For an upstream that speaks the client's own format: its bytes go on as they are.

    But usage that HelmDash asked for, and the client did not, stays here.
    """
    return Native(client.pass_stream(request=request), writer, client.stream_type)


def dropping_pipe(reader: StreamReader, writer: StreamWriter) -> Pipe:
    """For Ollama's own stream, whose array of token ids stays here."""
    return Native(ContextDropper(reader), writer, ollama.GENERATE_CLIENT.stream_type)


def translating_pipe(reader: StreamReader, writer: StreamWriter) -> Pipe:
    """For an upstream of another format."""
    return Translation(reader, writer)


class Native:
    """A pipe that looks at what passes through it. stream_type: the client's kind of stream."""

    def __init__(self, passing: PassThrough, writer: StreamWriter, stream_type: str) -> None:
        self._passing = passing
        self._writer = writer
        self._stream_type = stream_type
        self._latest = b""
        self.flush = passing.flush

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The same bytes, as far as the client is to see them, and their events."""
        found = self._passing.feed(data)
        self._latest = found[0] or self._latest
        return found

    def fail(self, error: WireError) -> bytes:
        """An error event in the format's own words.

        What was held back is the beginning of another event, which nobody could read any more.
        """
        end = self._passing.fail(error)
        return self._gap() + self._writer.write(Failed(error=error)) if end is None else end

    def _gap(self) -> bytes:
        """What ends the event in which the upstream has stopped, so that the next one is its
        own."""
        end, ends = _GAPS.get(self._stream_type.partition(";")[0], (b"", (b"",)))
        return b"" if not self._latest or self._latest.endswith(ends) else end


class Translation:
    """A pipe between two formats."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The events of these bytes, and the same written for the client."""
        events = self._reader.feed(data)
        return self._written(events), events

    def flush(self) -> tuple[bytes, list[Event]]:
        """What is left, and the client's own end mark."""
        events = self._reader.flush()
        return self._written(events) + self._writer.close(), events

    def fail(self, error: WireError) -> bytes:
        """An error event; no sound end follows it."""
        return self._writer.write(Failed(error=error))

    def _written(self, events: Iterable[Event]) -> bytes:
        return b"".join(
            [self._writer.write(event) for event in events if not _is_unreadable(event)]
        )


def _is_unreadable(event: Event) -> bool:
    """One event that cannot be read is noted in the record; the client gets all the others."""
    return isinstance(event, Failed) and event.error.code == UNDECODABLE_STREAM
