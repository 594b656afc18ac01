"""Streams of the OpenAI chat format, read.

https://platform.openai.com/docs/api-reference/chat-streaming: chunks as server-sent events,
`[DONE]` last; usage in a chunk of its own without choices, or, elsewhere, in the finish chunk.
"""

from __future__ import annotations

import orjson

from helmdash.providers.openai.errors import (
    error_in,
    error_of_choice,
)
from helmdash.providers.openai.read_messages import (
    reasoning_signature,
    reasoning_text,
    thinking_text,
)
from helmdash.providers.openai.reply import (
    find_usage,
    first_choice,
    has_media,
    read_reply,
)
from helmdash.providers.openai.tool_call_deltas import ToolCalls
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.shared.sse import SseSplitter, parse_block
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
    UsageSeen,
    WireError,
)

DONE = b"[DONE]"
TOO_LONG = "An event of the stream is too long."


class ChunkReader:
    """The data of one event after the other to events of ours. Never raises."""

    __slots__ = ("_calls", "_finish", "_has_ended", "_has_failed", "_id", "_is_started")

    def __init__(self) -> None:
        self._calls = ToolCalls()
        self._finish: str | None = None
        self._has_ended = False
        self._has_failed = False
        self._id: str | None = None
        self._is_started = False

    def read(self, data: bytes, events: list[Event]) -> Object | None:
        """Add the events of one chunk; gives the chunk itself, None where it is no object."""
        if data == DONE or not data:
            self._read_mark(data.strip(), events)
            return None
        try:
            chunk = orjson.loads(data)
        except ValueError:
            chunk = read_json(data)
        if chunk is None and data.strip() != b"null":
            self._read_mark(data.strip(), events)
            return None
        if not isinstance(chunk, dict):
            self.fail("An event of the stream is not a JSON object.", events)
            return None
        text = _plain_text(chunk) if self._is_started else None
        if text is not None:
            events.append(TextDelta(text=text))
        else:
            self._read_chunk(chunk, events)
        return chunk

    def fail(self, message: str, events: list[Event]) -> None:
        """Add the failure of reading this stream; it is said once."""
        if not self._has_failed:
            self._has_failed = True
            events.append(Failed(error=WireError(message=message, code=UNDECODABLE_STREAM)))

    def _read_mark(self, data: bytes, events: list[Event]) -> None:
        if not data:
            return
        if data != DONE:
            self.fail("An event of the stream is not JSON.", events)
        elif not self._has_ended:
            self._has_ended = True
            events.append(Ended())

    def _read_chunk(self, chunk: Object, events: list[Event]) -> None:
        if not self._is_started:
            self._start(chunk, events)
        choice = first_choice(chunk)
        if choice:
            self._read_choice(choice, events)
        if chunk.get("usage") is not None or "x_groq" in chunk or "timings" in chunk:
            usage = find_usage(chunk)
            if usage is not None:
                events.append(UsageSeen(usage=usage))
        if "error" in chunk or chunk.get("object") == "error":
            error = error_in(chunk)
            if error is not None:
                events.append(Failed(error=error))

    def _start(self, chunk: Object, events: list[Event]) -> None:
        """An error that comes first starts no reply; Azure's first chunk has an empty id."""
        reply_id, model = chunk.get("id"), chunk.get("model")
        self._id = reply_id if isinstance(reply_id, str) and reply_id else None
        known_model = model if isinstance(model, str) and model else None
        if self._id is not None or known_model is not None:
            self._is_started = True
            events.append(Started(id=self._id, model=known_model))

    def _read_choice(self, choice: Object, events: list[Event]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._read_delta(delta, events)
        elif isinstance(choice.get("text"), str) and choice["text"]:
            events.append(TextDelta(text=choice["text"]))
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish and finish != self._finish:
            self._finish = finish
            events.append(Finished(reason=finish))
        if "error" in choice:
            error = error_of_choice(choice)
            if error is not None:
                events.append(Failed(error=error))

    def _read_delta(self, delta: Object, events: list[Event]) -> None:
        content = delta.get("content")
        if "reasoning" in delta or "reasoning_content" in delta or "reasoning_details" in delta:
            _read_reasoning(delta, events)
        if content:
            _read_content(content, events)
        if content and len(delta) == 1:
            return  # nearly every delta holds its content and no more
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            events.append(RefusalDelta(text=refusal))
        if delta.get("tool_calls"):
            self._calls.read(delta["tool_calls"], events, reply_id=self._id)
        if delta.get("function_call"):
            self._calls.read_legacy(delta["function_call"], events, reply_id=self._id)
        if has_media(delta):
            events.append(MediaSeen())


def _plain_text(chunk: Object) -> str | None:
    """The text of a chunk that holds a piece of text and no more; None for any other.

    Nearly every chunk of a stream is one, and a stream has hundreds.
    """
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or not _NOTEWORTHY.isdisjoint(chunk):
        return None
    choice = choices[0]
    if type(choice) is not dict or choice.get("finish_reason") is not None or "error" in choice:
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1 or choice.get("index") or chunk.get("usage"):
        return None
    text = delta.get("content")
    return text if type(text) is str and text else None


# Members of a chunk that say more than its choice does.
_NOTEWORTHY = frozenset({"error", "x_groq", "timings"})


class BlockReader:
    """Blocks of a stream (sse) to events. Never raises.

    A server that ignores `stream`, or fails, may answer with one JSON body, or with a page.
    """

    __slots__ = ("_at_start", "_chunks")

    def __init__(self) -> None:
        self._at_start = True
        self._chunks = ChunkReader()

    def read(self, block: bytes, events: list[Event]) -> tuple[bytes, Object | None]:
        """Add a block's events; gives its data, and the chunk in it; None where it holds none."""
        if not self._at_start and block[:7] == b"data: {" and block.find(b"\n") == len(block) - 2:
            data = block[6:-2]
            return data, self._chunks.read(data, events)
        event = parse_block(block, at_start=self._at_start)
        is_first, self._at_start = self._at_start, False
        if event is not None:
            return event.data, self._chunks.read(event.data, events)
        if is_first:
            self._read_other(block.removeprefix(b"\xef\xbb\xbf").lstrip(), events)
        return b"", None

    def fail(self, message: str, events: list[Event]) -> None:
        """Add the failure of reading this stream; it is said once."""
        self._chunks.fail(message, events)

    def _read_other(self, body: bytes, events: list[Event]) -> None:
        if body.startswith((b"{", b"[")):
            events += events_of(read_reply(body))
        elif body.startswith(b"<"):
            self.fail("The stream is a page, not events.", events)


class OpenAIStreamReader:
    """Bytes of a stream to events; the same however they are split. Never raises."""

    __slots__ = ("_blocks", "_splitter")

    def __init__(self) -> None:
        self._blocks = BlockReader()
        self._splitter = SseSplitter()

    def feed(self, data: bytes) -> list[Event]:
        """The events these bytes complete."""
        return self._read(self._splitter.feed(data))

    def flush(self) -> list[Event]:
        """The events of what is left when the upstream has closed."""
        return [] if self._splitter.too_long else self._read(self._splitter.flush())

    def _read(self, blocks: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for block in blocks:
            self._blocks.read(block, events)
        if self._splitter.too_long:
            self._splitter.flush()
            self._blocks.fail(TOO_LONG, events)
        return events


def _read_reasoning(delta: Object, events: list[Event]) -> None:
    text = reasoning_text(delta)
    signature = reasoning_signature(delta.get("reasoning_details"))
    if text or signature:
        events.append(ReasoningDelta(text=text, signature=signature))


def _read_content(content: Json, events: list[Event]) -> None:
    """Content is a string; Mistral's reasoning models send a list of parts."""
    if isinstance(content, str):
        events.append(TextDelta(text=content))
        return
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "thinking":
            thought = thinking_text(part)
            events.extend([ReasoningDelta(text=thought)] if thought else [])
        elif isinstance(part.get("text"), str) and part["text"]:
            events.append(TextDelta(text=part["text"]))
