"""A recorded call as the attributes of a span, with HelmDash's judgement.

Names of the GenAI semantic conventions, old and new where they differ, of OpenInference (Phoenix)
and of Langfuse, so that each receiver finds its own; ours begin with `helmdash.`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b

from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.usage import Usage

Value = str | int | float | bool | tuple[str, ...]

# A call that came by OTLP itself: its judgement hangs below the span it came from.
_OF_SPAN = re.compile(r"otel:([0-9a-f]{32}):([0-9a-f]{16})")
_TRACE_BYTES, _SPAN_BYTES = 16, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCall:
    """What is exported of a call. Tokens, bytes and milliseconds; None: not known."""

    id: str
    project: str
    model: str
    upstream_model: str | None
    provider: str | None
    conversation: str | None
    purpose: str
    lane: str
    client: str | None
    round_number: int | None
    generation: int | None
    usage: Usage
    health: Health
    finish_reason: str | None
    status: str
    cause: str | None
    cause_rule: str | None
    cause_detail: str | None
    trim_before_bytes: int | None
    trim_after_bytes: int | None
    is_compacted: bool
    started_at: datetime
    latency_ms: int | None
    ttft_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSpan:
    """A client span. parent_id "": it has none. message "": the status says nothing of it."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    started_at: datetime
    ended_at: datetime
    is_error: bool
    message: str
    attributes: Mapping[str, Value] = field(default_factory=dict)


def judged_span(call: JudgedCall) -> JudgedSpan:
    """The span of a call. The same call has the same ids, however often it is exported."""
    own = blake2b(f"{call.project}\x00{call.id}".encode(), digest_size=_TRACE_BYTES).hexdigest()
    found = _OF_SPAN.fullmatch(call.id)
    return JudgedSpan(
        trace_id=found[1] if found else own,
        span_id=own[: 2 * _SPAN_BYTES],
        parent_id=found[2] if found else "",
        name=f"chat {call.model}",
        started_at=call.started_at,
        ended_at=call.started_at + timedelta(milliseconds=call.latency_ms or 0),
        is_error=call.cause is not None or call.status == "error",
        message=call.cause_detail or call.cause or "",
        attributes=_attributes(call),
    )


def _attributes(call: JudgedCall) -> dict[str, Value]:
    usage, health = call.usage, call.health
    told: dict[str, Value | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": call.provider,
        "gen_ai.system": call.provider,
        "gen_ai.request.model": call.model,
        "gen_ai.response.model": call.upstream_model or call.model,
        "gen_ai.response.finish_reasons": (call.finish_reason,) if call.finish_reason else None,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.conversation.id": call.conversation,
        "gen_ai.conversation.compacted": call.is_compacted or None,
        "session.id": call.conversation,
        "error.type": call.cause,
        "openinference.span.kind": "LLM",
        "llm.model_name": call.upstream_model or call.model,
        "llm.token_count.prompt": usage.prompt_tokens,
        "llm.token_count.completion": usage.completion_tokens,
        "llm.token_count.total": usage.total_tokens,
        "llm.token_count.prompt_details.cache_read": usage.cached_tokens,
        "llm.token_count.prompt_details.cache_write": usage.cache_write_tokens,
        "langfuse.observation.level": _langfuse_level(call),
        "langfuse.observation.status_message": call.cause_detail or _words(health),
        "langfuse.trace.tags": ("helmdash", f"helmdash:{health.level.value}"),
        "helmdash.call_id": call.id,
        "helmdash.project": call.project,
        "helmdash.purpose": call.purpose,
        "helmdash.lane": call.lane,
        "helmdash.client": call.client,
        "helmdash.round": call.round_number,
        "helmdash.generation": call.generation,
        "helmdash.health.level": health.level.value,
        "helmdash.health.limit_tokens": health.limit_tokens,
        "helmdash.health.limit_source": health.limit_source.value if health.limit_source else None,
        "helmdash.cause": call.cause,
        "helmdash.cause_rule": call.cause_rule,
        "helmdash.suspected_cut": health.reason is HealthReason.SUSPECTED_CUT,
        "helmdash.trim.before_bytes": call.trim_before_bytes,
        "helmdash.trim.after_bytes": call.trim_after_bytes,
        "gen_ai.response.time_to_first_chunk": _seconds(call.ttft_ms),
    }
    return {name: value for name, value in told.items() if value is not None}


def _langfuse_level(call: JudgedCall) -> str:
    if call.cause is not None or call.health.level is Level.CRITICAL:
        return "ERROR"
    is_cut = call.health.reason is HealthReason.SUSPECTED_CUT
    return "WARNING" if is_cut or call.health.level is Level.CAUTION else "DEFAULT"


def _words(health: Health) -> str | None:
    if health.level in (Level.HEALTHY, Level.UNKNOWN) or health.hard_util is None:
        return None
    return f"{health.level.value}: {health.hard_util:.0%} of {health.limit_tokens:,} tokens"


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
