"""Which log records tell of calls: Claude Code, Codex, Gemini CLI and Qwen Code report theirs so.

Their other events are what happens around calls; of several records of one call the one with the
counts is taken. The conventions' own event of an inference is a second telling of its span, and has
its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b

from helmdash.core.agents.claude_hooks import ClientEvent
from helmdash.core.agents.names import foreign_name
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.telemetry import claude
from helmdash.core.telemetry.facts import (
    Place,
    attempt_of,
    call_id,
    client_of_source,
    finish_reason_of,
    http_status_of,
    placed,
    status_of,
    whole_ms,
)
from helmdash.core.telemetry.spans import capture_of
from helmdash.core.telemetry.values import (
    Attributes,
    LogRecord,
    Span,
    count_of,
    first_present,
    moment_of,
    nanoseconds_of,
    number_of,
    text_of,
    word_of,
)

_INFERENCE = "gen_ai.client.inference.operation.details"
_MS = 1_000_000
# What Gemini CLI asks a model beside the conversation, by the end of its `role`.
_GEMINI_SIDE = (("compressor", "compaction"), ("router", "classify"), ("next_speaker", "classify"))
_GEMINI_MAIN = "main"
_DIGEST_BYTES = 8
_REPLY_CHARS = 100
# Session, moment and counts of a call.
_Telling = tuple[str | None, str | None, int | None, int | None]


def call_of(record: LogRecord) -> Capture | None:
    """The call that a log record tells of; None for one that tells of none. Never raises."""
    name, time_ns = _name_of(record), _time_of(record)
    own = _claude_name(name, record)
    if own is not None:
        return claude.claude_call(own, record, time_ns=time_ns)
    if name.startswith("codex."):
        return _codex_call(name, record, time_ns)
    family, _, event = name.partition(".")
    if family in _FAMILY:
        return _gemini_call(_FAMILY[family], event, record, time_ns)
    if name == _INFERENCE and not _is_gemini(record):
        return _inference(record, time_ns)
    return None


def _name_of(record: LogRecord) -> str:
    name = word_of(record.attributes.get("event.name"), 200) or word_of(record.name, 200) or ""
    if not name.startswith(_PREFIXES) and record.body.startswith(_PREFIXES):
        # Claude Code says the whole name in the body, and its end in the attribute.
        return word_of(record.body, 200) or ""
    return name


def _time_of(record: LogRecord) -> int:
    return record.time_ns or nanoseconds_of(record.attributes.get("event.timestamp"))


def _claude_name(name: str, record: LogRecord) -> str | None:
    """An event of Claude Code without its prefix; None: it is another program's."""
    if name.startswith(claude.PREFIX):
        return name[len(claude.PREFIX) :]
    source = record.source
    is_own = source.scope.startswith("com.anthropic.claude_code")
    return name if is_own or source.resource.get("service.name") == "claude-code" else None


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """What a client tells that is no call, and when it was; None: it does not say."""

    event: ClientEvent
    at: datetime | None


def events_of(records: Iterable[LogRecord]) -> list[TimedEvent]:
    """What the records of one export tell of conversations besides their calls."""
    found: list[TimedEvent] = []
    for record in records:
        own, time_ns = _claude_name(_name_of(record), record), _time_of(record)
        event = claude.claude_event(own, record, time_ns=time_ns) if own is not None else None
        if event is not None:
            found.append(TimedEvent(event, moment_of(time_ns)))
    return found


def calls_of(records: Iterable[LogRecord]) -> list[Capture]:
    """The calls that the records of one export tell of. Of several that tell of one (a request, and
    that it was refused) the later ones complete the first."""
    found: dict[str, Capture] = {}
    told = list(records)
    replies = _gemini_replies(told)
    for record in told:
        capture = call_of(record)
        if capture is None or capture.id is None:
            continue
        first = found.get(capture.id)
        if first is not None:
            capture = _completed(first, capture)
        elif replies and (left := replies.get(_gemini_telling(record))):
            capture = replace(capture, reply_id=left.pop(0))
        found[capture.id or ""] = capture
    return list(found.values())


def _completed(first: Capture, later: Capture) -> Capture:
    unknown = {name: getattr(later, name) for name in _COMPLETED if getattr(first, name) is None}
    return replace(first, **unknown)


# What a second record of a call may know.
_COMPLETED = ("usage", "finish_reason", "http_status", "error_message", "latency_ms", "ttft_ms")
# Qwen Code was made of Gemini CLI, and counts as that; by the beginnings of their events.
_FAMILY = {"gemini_cli": "gemini-cli", "qwen-code": "qwen-code"}
_PREFIXES = (claude.PREFIX, "codex.", *(f"{name}." for name in _FAMILY))


def _is_gemini(record: LogRecord) -> bool:
    """Gemini CLI writes the conventions' event beside its own, before each call and after it."""
    source = record.source
    return source.scope == "gemini-cli" or source.resource.get("service.name") == "gemini-cli"


def _gemini_replies(records: Iterable[LogRecord]) -> dict[_Telling, list[str]]:
    """The ids of replies, in their order: Gemini CLI tells them in the conventions' event alone."""
    found: dict[_Telling, list[str]] = {}
    for record in records:
        reply = word_of(record.attributes.get("gen_ai.response.id"), _REPLY_CHARS)
        if reply is not None and _is_gemini(record) and _name_of(record) == _INFERENCE:
            found.setdefault(_gemini_telling(record), []).append(reply)
    return found


def _gemini_telling(record: LogRecord) -> _Telling:
    """What Gemini CLI's own event of a call and the conventions' have in common."""
    told = record.attributes
    return (
        word_of(told.get("session.id"), 1024),
        word_of(told.get("event.timestamp"), 64),
        count_of(first_present(told, ("input_token_count", "gen_ai.usage.input_tokens"))),
        count_of(first_present(told, ("output_token_count", "gen_ai.usage.output_tokens"))),
    )


def _codex_call(name: str, record: LogRecord, time_ns: int) -> Capture | None:
    told = record.attributes
    is_counted = (
        name == "codex.sse_event"
        and told.get("event.kind") == "response.completed"
        and told.get("input_token_count") is not None
    )
    message = text_of(told.get("error.message"), 2000)
    http_status = http_status_of(told.get("http.response.status_code"))
    is_asking = name in ("codex.api_request", "codex.websocket_request")
    is_failed = (is_asking and (message is not None or (http_status or 0) >= 400)) or (
        name == "codex.sse_event" and message is not None
    )
    if not (is_counted or is_failed):
        return None
    thread = word_of(told.get("conversation.id"), 1024)
    duration = whole_ms(number_of(told.get("duration_ms"))) if is_asking else None
    client, version = client_of_source(record.source, told)
    status, _, http_status = status_of(None, is_error=is_failed, http_status=http_status)
    usage: dict[str, object] = {
        "prompt_tokens": count_of(told.get("input_token_count")),
        "completion_tokens": count_of(told.get("output_token_count")),
        "cached_tokens": count_of(told.get("cached_token_count")),
        "cache_write_tokens": count_of(told.get("cache_write_token_count")),
        "reasoning_tokens": count_of(told.get("reasoning_token_count")),
        "rule": "codex",
    }
    return Capture(
        id=_id("codex", thread, record, time_ns),
        model=word_of(first_present(told, ("model", "slug")), 255) or "unknown",
        provider="openai",
        conversation=foreign_name(thread) if thread else None,
        routes=(CallRoute.OTLP_LOG,),
        attempt=attempt_of(told.get("attempt")),
        usage=_without_none(usage) if is_counted else None,
        status=status,
        http_status=http_status,
        error_message=message,
        error_is_own=False,
        latency_ms=duration,
        ttft_ms=whole_ms(number_of(told.get("ttft_ms"))),
        started_at=moment_of(time_ns - (duration or 0) * _MS),
        client_name=client or "codex",
        client_version=version,
    )


def _gemini_call(agent: str, event: str, record: LogRecord, time_ns: int) -> Capture | None:
    if event not in ("api_response", "api_error", "api_cancel"):
        return None
    told = record.attributes
    is_error = event != "api_response"
    session = word_of(told.get("session.id"), 1024)
    place = _gemini_place(told, session)
    output = count_of(told.get("output_token_count"))
    thoughts = count_of(told.get("thoughts_token_count"))
    # Thoughts are part of the completion, what tools took stands beside the prompt.
    completion = output
    if output is not None and not _is_whole(told, output):
        completion = output + (thoughts or 0)
    usage: dict[str, object] = {
        "prompt_tokens": count_of(told.get("input_token_count")),
        "completion_tokens": completion,
        "cached_tokens": count_of(told.get("cached_content_token_count")),
        "reasoning_tokens": thoughts,
        "rule": agent.replace("-", "_"),
    }
    duration = whole_ms(number_of(first_present(told, ("duration_ms", "duration"))))
    kind = "cancelled" if event == "api_cancel" else word_of(told.get("error_type"), 128)
    status, code, http_status = status_of(
        kind,
        is_error=is_error,
        http_status=http_status_of(first_present(told, ("status_code", "http.status_code"))),
    )
    client, version = client_of_source(record.source, told)
    message = first_present(told, ("error", "error.message", "error_message"))
    return Capture(
        id=_id(agent.removesuffix("-cli").removesuffix("-code"), session, record, time_ns),
        model=word_of(told.get("model"), 255) or "unknown",
        provider="gemini" if agent == "gemini-cli" else None,
        conversation=place.conversation,
        parent=place.parent,
        lane=place.lane,
        purpose=place.purpose or "chat",
        routes=(CallRoute.OTLP_LOG,),
        usage=_without_none(usage) if output is not None or usage["prompt_tokens"] else None,
        finish_reason=finish_reason_of(
            {"gen_ai.response.finish_reasons": told.get("finish_reasons")}
        ),
        status=status,
        http_status=http_status,
        error_code=code,
        error_message=text_of(message, 2000) if is_error else None,
        error_is_own=False,
        latency_ms=duration,
        started_at=moment_of(time_ns - (duration or 0) * _MS),
        client_name=client or agent,
        client_version=version,
    )


def _is_whole(told: Attributes, output: int) -> bool:
    """Whether the output has the thoughts inside, as servers of OpenAI's format count: then it is
    the whole total with the prompt."""
    prompt, total = count_of(told.get("input_token_count")), count_of(told.get("total_token_count"))
    return prompt is not None and total == prompt + output


def _gemini_place(told: Attributes, session: str | None) -> Place:
    role = word_of(told.get("role"), 200)
    if session is None or role is None or role == _GEMINI_MAIN:
        return placed(session)
    if role.startswith("utility"):
        purpose = next((each for end, each in _GEMINI_SIDE if role.endswith(end)), "auxiliary")
        return Place(conversation=foreign_name(session), lane=Lane.SIDE, purpose=purpose)
    return placed(session, role)


def _inference(record: LogRecord, time_ns: int) -> Capture | None:
    """The conventions' event of one call: what its span says, with the span's own id."""
    told = record.attributes
    has_counts = first_present(told, ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"))
    if not (record.trace_id and record.span_id) or has_counts is None:
        return None
    span = Span(
        source=record.source,
        trace_id=record.trace_id,
        span_id=record.span_id,
        start_ns=time_ns,
        attributes=told,
    )
    return capture_of(span, route=CallRoute.OTLP_LOG)


def _id(agent: str, session: str | None, record: LogRecord, time_ns: int) -> str:
    """What tells a record from every other of its session, the same when it is sent again."""
    told = record.attributes
    parts = [told.get("event.timestamp"), time_ns, told.get("event.name"), record.span_id]
    parts += [value for name, value in sorted(told.items()) if name.endswith("_count")]
    parts += [told.get("attempt"), told.get("prompt_id")]
    digest = blake2b(repr(parts).encode("utf-8", "replace"), digest_size=_DIGEST_BYTES)
    return call_id(f"{agent}:{session or record.trace_id or 'none'}:{digest.hexdigest()}")


def _without_none(told: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in told.items() if value is not None}
