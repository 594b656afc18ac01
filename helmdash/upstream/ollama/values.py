"""What an Ollama server answers, as values. A count that was not reported is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from helmdash.providers.wire import Json, Object

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole reply. `message` is that of a chat, tool calls and thoughts included.

    `context` (token ids of `/api/generate`) is None unless it was asked for; `raw` never holds it.
    """

    model: str
    text: str
    done: bool
    done_reason: str | None
    prompt_eval_count: int | None
    eval_count: int | None
    duration_ms: int | None
    message: Object | None = None
    context: tuple[int, ...] | None = None
    raw: Object = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One line of a stream; the last one has the whole reply in `answer`."""

    text: str
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Whether a server is there, and the models it lists. `error` says why it is not."""

    is_available: bool
    models: tuple[str, ...] = ()
    latency_ms: int | None = None
    error: str | None = None


def read_answer(value: Object, *, keeps_context: bool, text: str | None = None) -> Answer:
    """An Answer from the JSON of a reply, or of a stream's last line with the `text` of all; None:
    the reply's own."""
    message = value.get("message")
    said = message if isinstance(message, Mapping) else None
    if text is None:
        text = _text(said.get("content") if said is not None else value.get("response"))
    if said is not None:
        said = {**said, "content": text}
    return Answer(
        model=_text(value.get("model")),
        text=text,
        done=value.get("done") is True,
        done_reason=_text(value.get("done_reason")) or None,
        prompt_eval_count=_count(value.get("prompt_eval_count")),
        eval_count=_count(value.get("eval_count")),
        duration_ms=_milliseconds(value.get("total_duration")),
        message=said,
        context=_ids(value.get("context")) if keeps_context else None,
        raw={name: member for name, member in value.items() if name != "context"},
    )


def text_of_line(value: Object) -> str:
    """What one line of a stream says."""
    message = value.get("message")
    holder = message if isinstance(message, Mapping) else value
    return _text(holder.get("content" if holder is message else "response"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Json) -> int | None:
    """Ollama leaves a count of 0 out, so a 0 that is there counts nothing, either."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return cast("int", value) if is_count else None


def _milliseconds(nanoseconds: Json) -> int | None:
    count = _count(nanoseconds)
    return None if count is None else round(count / _NS_PER_MS)


def _ids(value: Json) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(each for each in value if isinstance(each, int))
