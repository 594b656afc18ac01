"""What an Ollama server answers, as values. A count that was not reported is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field

from helmdash.providers.ollama.reply import said_in
from helmdash.providers.shared.reported import object_in, text_in, tokens_of
from helmdash.providers.wire import Json, Object

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaReply:
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
    answer: OllamaReply | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Whether a server is there, and the models it lists. `error` says why it is not."""

    is_available: bool
    models: tuple[str, ...] = ()
    latency_ms: int | None = None
    error: str | None = None


def read_answer(value: Object, *, keeps_context: bool, text: str | None = None) -> OllamaReply:
    """Read the JSON of a reply, or of a stream's last line with the `text` of all; None: the
    reply's own text."""
    said = said_in(value) if text is None else text
    message = object_in(value, "message")
    return OllamaReply(
        model=text_in(value, "model") or "",
        text=said,
        done=value.get("done") is True,
        done_reason=text_in(value, "done_reason"),
        # Ollama leaves a count of 0 out, so a 0 that is there counts nothing, either.
        prompt_eval_count=tokens_of(value.get("prompt_eval_count")),
        eval_count=tokens_of(value.get("eval_count")),
        duration_ms=_milliseconds(value.get("total_duration")),
        message={**message, "content": said} if message is not None else None,
        context=_ids(value.get("context")) if keeps_context else None,
        raw={name: member for name, member in value.items() if name != "context"},
    )


def _milliseconds(nanoseconds: Json) -> int | None:
    is_known = type(nanoseconds) is int and nanoseconds > 0
    return round(nanoseconds / _NS_PER_MS) if is_known else None


def _ids(value: Json) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(each for each in value if isinstance(each, int))
