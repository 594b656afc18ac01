"""Calls as they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helmdash.api.schemas import calls as call_shapes
from helmdash.core.calls.usage import Usage
from helmdash.queries.calls import CallDetail, CallView
from helmdash.shapes.rendering import cause, client, health


def call(value: CallView) -> call_shapes.Call:
    """A call as lists and the export show it."""
    trim = value.trim
    return {
        **_call_core(value),
        "trim": {"before_bytes": trim.before_bytes, "after_bytes": trim.after_bytes}
        if trim
        else None,
    }


def call_detail(value: CallDetail) -> call_shapes.CallDetail:
    """A call with what lies beside it."""
    trim = value.call.trim
    return {
        **_call_core(value.call),
        "trim": {
            "before_bytes": trim.before_bytes,
            "after_bytes": trim.after_bytes,
            "dropped": list(value.trim_dropped),
        }
        if trim
        else None,
        "suspected_cut": _suspected_cut(value.suspected_cut),
        "rules": None if value.rules is None else dict(value.rules),
        "usage_raw": value.usage_raw,
        "metadata": value.metadata,
        "attempts": list(value.attempts),
        "messages": None if value.messages is None else list(value.messages),
        "content": value.content,
        "related": [call(other) for other in value.related],
    }


def _suspected_cut(stored: Mapping[str, Any] | None) -> call_shapes.SuspectedCut | None:
    if stored is None:
        return None
    return {
        "version": stored["version"],
        "rule": stored["rule"],
        "detail": stored["detail"],
        "expected_tokens": stored["expected_tokens"],
        "reported_tokens": stored["reported_tokens"],
    }


def _call_core(value: CallView) -> call_shapes.CallCore:
    sent = value.sent
    return {
        "id": value.id,
        "conversation": value.conversation,
        "round": value.round_number,
        "generation": value.generation,
        "attempt": value.attempt,
        "model": value.model,
        "model_key": value.model_key,
        "client": client(value.client),
        "client_window": value.client_window,
        "upstream_model": value.upstream_model,
        "provider": value.provider,
        "pack": value.pack,
        "purpose": value.purpose,
        "correlation_id": value.correlation_id,
        "caller": value.caller,
        "prompt_variant": value.prompt_variant,
        "response_format": value.response_format,
        "usage": usage(value.usage),
        "status": value.status,
        "http_status": value.http_status,
        "finish_reason": value.finish_reason,
        "finish_reason_raw": value.finish_reason_raw,
        "error_code": value.error_code,
        "error_message": value.error_message,
        "cause": cause(value.cause),
        "raw_content_len": value.raw_content_len,
        "content_len": value.content_len,
        "latency_ms": value.latency_ms,
        "ttft_ms": value.ttft_ms,
        "overhead_ms": value.overhead_ms,
        "health": health(value.health),
        "budget_key": value.budget_key,
        "fit_id": value.fit_id,
        "sent": {
            "bytes": sent.bytes,
            "messages": sent.messages,
            "tools_bytes": sent.tools_bytes,
            "images": sent.images,
        },
        "estimate_tokens": value.estimate_tokens,
        "prompt_hash": value.prompt_hash,
        "placed_by": value.placed_by,
        "started_at": value.started_at,
        "recorded_at": value.recorded_at,
    }


def usage(value: Usage) -> call_shapes.Usage:
    """The usage object."""
    return {
        "prompt_tokens": value.prompt_tokens,
        "completion_tokens": value.completion_tokens,
        "total_tokens": value.total_tokens,
        "cached_tokens": value.cached_tokens,
        "cache_write_tokens": value.cache_write_tokens,
        "reasoning_tokens": value.reasoning_tokens,
    }
