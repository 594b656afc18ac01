"""Claude Code's log events, and where its calls belong.

https://code.claude.com/docs/en/monitoring-usage names the events; tried with 2.1.197. The three
counters exclude each other. `query_source` says what a request was for: the main thread's own calls
alone say how full a conversation is.
"""

from __future__ import annotations

from helmdash.core.agents.claude_hooks import ClientEvent, ClientEventKind
from helmdash.core.agents.names import agent_name, foreign_name
from helmdash.core.budgets.model_names import split_window
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.telemetry.facts import (
    Place,
    attempt_of,
    call_id,
    client_of_source,
    http_status_of,
    placed,
    status_of,
    whole_ms,
)
from helmdash.core.telemetry.prompts import beside
from helmdash.core.telemetry.values import (
    Attributes,
    LogRecord,
    count_of,
    moment_of,
    number_of,
    text_of,
    word_of,
)

PREFIX = "claude_code."
_MAIN = ("repl_main_thread", "sdk")
_AGENT = "agent:"
_SIDE_WORDS = (("compact", "compaction"), ("title", "title"), ("memory", "memory"))
_MS = 1_000_000


def claude_place(told: Attributes, session: str | None) -> Place:
    """Where a call of Claude Code belongs: its session, a sub-agent's conversation, or beside."""
    if session is None:
        return Place()
    agent = word_of(told.get("agent_id"), 200)
    if agent is not None:
        above = word_of(told.get("parent_agent_id"), 200)
        parent = agent_name(session, above if above != agent else None)
        return Place(conversation=agent_name(session, agent), parent=parent, lane=Lane.MAIN)
    source = word_of(told.get("query_source"), 200) or _MAIN[0]
    if source.startswith(_MAIN):
        return Place(conversation=foreign_name(session), lane=Lane.MAIN)
    if source.startswith(_AGENT):
        return placed(session, source)
    purpose = next((each for word, each in _SIDE_WORDS if word in source.lower()), "auxiliary")
    return Place(conversation=foreign_name(session), lane=Lane.SIDE, purpose=purpose)


def claude_call(event: str, record: LogRecord, *, time_ns: int) -> Capture | None:
    """The call that an event tells of; None for one that tells of none.

    event: its name without the prefix.
    """
    if event not in ("api_request", "api_error", "api_refusal"):
        return None
    told = record.attributes
    session = word_of(told.get("session.id"), 1024)
    place = claude_place(told, session)
    asked = split_window(word_of(told.get("model"), 255) or "unknown")
    client, version = client_of_source(record.source, told)
    duration = whole_ms(number_of(told.get("duration_ms")))
    counts = beside(
        count_of(told.get("input_tokens")),
        count_of(told.get("cache_read_tokens")),
        count_of(told.get("cache_creation_tokens")),
        completion=count_of(told.get("output_tokens")),
        rule="claude_code",
    )
    status, code, http_status = status_of(
        "api_error" if event == "api_error" else None,
        is_error=event == "api_error",
        http_status=http_status_of(told.get("status_code")),
    )
    return Capture(
        id=_id(record, session, time_ns),
        model=asked.model,
        client_window=asked.window,
        provider="anthropic",
        conversation=place.conversation,
        parent=place.parent,
        lane=place.lane,
        purpose=place.purpose or "chat",
        routes=(CallRoute.OTLP_LOG,),
        attempt=attempt_of(told.get("attempt")),
        usage=counts.to_usage(),
        finish_reason="refusal" if event == "api_refusal" else None,
        status=status,
        http_status=http_status,
        error_code=code,
        error_message=text_of(told.get("error"), 2000) if status == "error" else None,
        error_is_own=False,
        latency_ms=duration,
        # The event is written when the call has ended.
        started_at=moment_of(time_ns - (duration or 0) * _MS),
        client_name=client or "claude-code",
        client_version=version,
    )


def claude_event(event: str, record: LogRecord, *, time_ns: int) -> ClientEvent | None:
    """What an event tells of its session that is no call; None for any other.

    A compaction that failed by itself is the client's refusal to go on: it answers that the prompt
    is too long, and sends nothing. event: its name without the prefix. Keys are those of its hooks,
    which tell the same.
    """
    told = record.attributes
    session = word_of(told.get("session.id"), 1024)
    conversation = agent_name(session, None) if session is not None else None
    if event != "compaction" or conversation is None:
        return None
    trigger = word_of(told.get("trigger"), 64) or ""
    turn = (
        word_of(told.get("prompt.id"), 100) or f"{count_of(told.get('event.sequence'))} {time_ns}"
    )
    if str(told.get("success", "true")).lower() != "false":
        return ClientEvent(
            kind=ClientEventKind.COMPACTION,
            conversation=conversation,
            key=f"PostCompact {turn}",
            detail=trigger,
        )
    if trigger != "auto":
        return None  # somebody asked for it, and goes on without
    why = word_of(told.get("error"), 200)
    return ClientEvent(
        kind=ClientEventKind.REFUSAL,
        conversation=conversation,
        key=f"StopFailure {turn}",
        detail="its compaction failed",
        words=why or "",
    )


def _id(record: LogRecord, session: str | None, time_ns: int) -> str:
    """The provider's own id, which other doors know as well; else the event's place in its
    session, which is the same when it is sent again."""
    told = record.attributes
    request = word_of(told.get("request_id"), 100)
    if request is not None:
        return call_id(f"anthropic:{request}")
    own = word_of(told.get("client_request_id"), 100)
    if own is not None:
        return call_id(f"claude:client:{own}")
    number = count_of(told.get("event.sequence"))
    mark = time_ns if number is None else number
    return call_id(f"claude:{session or record.trace_id}:{mark}")
