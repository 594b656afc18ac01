"""Values of queries and operations as the shapes that leave. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helmdash.api.schemas import budgets as budget_shapes
from helmdash.api.schemas import calls as call_shapes
from helmdash.api.schemas import common, fitting
from helmdash.api.schemas import conversations as conversation_shapes
from helmdash.core.budgets import Budget, BudgetFigures, EffectiveBudget, Resolution
from helmdash.core.failures import Cause
from helmdash.core.health import Health
from helmdash.core.ranking import Ranked
from helmdash.core.usage import Usage
from helmdash.operations.fitting import Fitted
from helmdash.operations.recording import Recorded
from helmdash.queries.budgets import BudgetRow, ContextBudgets
from helmdash.queries.calls import CallDetail, CallView
from helmdash.queries.catalog import CatalogInfo
from helmdash.queries.conversations import ConversationDetail, ConversationView, TimelineItem


def health(value: Health) -> common.Health:
    """The Health object."""
    return {
        "level": value.level,
        "reason": value.reason,
        "prompt_tokens": value.prompt_tokens,
        "limit_tokens": value.limit_tokens,
        "limit_source": value.limit_source,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "hard_util": value.hard_util,
        "optimal_util": value.optimal_util,
    }


def cause(value: Cause | None) -> common.Cause | None:
    """The Cause object; null where the call was fine."""
    if value is None:
        return None
    return {
        "name": value.name,
        "rule": value.rule,
        "advice": value.advice,
        "detail": value.detail,
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


def recorded(value: Recorded) -> call_shapes.Recorded:
    """The answer to POST /calls."""
    return {
        "id": value.id,
        "conversation": value.conversation,
        "round": value.round_number,
        "generation": value.generation,
        "health": health(value.health),
        "finish_reason": value.finish_reason,
        "cause": cause(value.cause),
        "duplicate": value.duplicate,
    }


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
        "usage_raw": value.usage_raw,
        "metadata": value.metadata,
        "attempts": list(value.attempts),
        "messages": None if value.messages is None else list(value.messages),
        "content": value.content,
        "related": [call(other) for other in value.related],
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
        "started_at": value.started_at,
        "recorded_at": value.recorded_at,
    }


def conversation(value: ConversationView) -> conversation_shapes.Conversation:
    """A conversation as lists show it."""
    return {
        "id": value.id,
        "model": value.model,
        "round": value.round_number,
        "generation": value.generation,
        "health": health(value.health),
        "known_level": value.known_level,
        "counts": {
            # Calls are numbered without a gap, so the newest number is their count.
            "calls": value.generation,
            "rounds": value.round_number,
            "failures": value.failures,
            "trims": value.trims,
        },
        "started_at": value.started_at,
        "latest_at": value.latest_at,
    }


def conversation_detail(value: ConversationDetail) -> conversation_shapes.ConversationDetail:
    """A conversation with its rounds and level changes."""
    return {
        **conversation(value.conversation),
        "rounds": [
            {
                "number": item.number,
                "first_generation": item.first_generation,
                "latest_generation": item.latest_generation,
                "peak_prompt_tokens": item.peak_prompt_tokens,
                "started_at": item.started_at,
                "ended_at": item.ended_at,
            }
            for item in value.rounds
        ],
        "remediation": {"active": False},
        "level_changes": [
            {
                "generation": item.generation,
                "from_level": item.from_level,
                "to_level": item.to_level,
                "at": item.at,
            }
            for item in value.changes
        ],
    }


def timeline_item(value: TimelineItem) -> conversation_shapes.TimelineItem:
    """One event."""
    return {
        "generation": value.generation,
        "round": value.round_number,
        "at": value.at,
        "event": value.event,
        "call_id": value.call_id,
        "model": value.model,
        "prompt_tokens": value.prompt_tokens,
        "level": value.level,
    }


def budget(row: BudgetRow) -> budget_shapes.Budget:
    """One row as it is edited."""
    value: Budget = row.budget
    return {
        "id": row.id,
        **_figures(value),
        "project": row.project,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "updated_at": row.updated_at,
    }


def effective(value: EffectiveBudget) -> budget_shapes.Effective:
    """The figures that hold for a model."""
    return {
        "model": value.model,
        **_figures(value),
        "rule": value.rule,
        "budget_id": value.budget_id,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "limit_tokens": value.limit_tokens,
        "limit_source": value.limit_source,
    }


def _figures(value: BudgetFigures) -> budget_shapes.Figures:
    return {
        "key": value.key,
        "input_tokens": value.input_tokens,
        "output_tokens": value.output_tokens,
        "max_catalog_bytes": value.max_catalog_bytes,
        "tier": value.tier,
        "allows_llm_filter": value.allows_llm_filter,
        "filter_model": value.filter_model,
        "is_hybrid_reasoning": value.is_hybrid_reasoning,
        "wants_strict_json": value.wants_strict_json,
        "supports_prefix_cache": value.supports_prefix_cache,
        "cached_input_cost_usd_per_mtok": value.cached_input_cost_usd_per_mtok,
        "input_cost_usd_per_mtok": value.input_cost_usd_per_mtok,
        "output_cost_usd_per_mtok": value.output_cost_usd_per_mtok,
        "context_length": value.context_length,
        "input_length": value.input_length,
        "chars_per_token": value.chars_per_token,
        "safety_multiplier": value.safety_multiplier,
        "reserve_tokens": value.reserve_tokens,
        "evidence": value.evidence,
        "enabled": value.enabled,
    }


def resolution(value: Resolution) -> budget_shapes.Resolved:
    """A lookup, explained."""
    return {
        "model": value.model,
        "budget": effective(value.budget),
        "matched": {
            "key": value.matched_key,
            "rule": value.rule,
            "budget_id": value.budget_id,
        },
        "candidates": [
            {"key": item.key, "rule": item.rule, "won": item.won, "why": item.why}
            for item in value.candidates
        ],
    }


def context_budgets(value: ContextBudgets) -> budget_shapes.ContextBudgets:
    """The seed's projection."""
    return {
        "fetched_at": value.fetched_at,
        "fallback": effective(value.fallback),
        "budgets": [effective(item) for item in value.budgets],
        "policy": value.policy,
    }


def fitted(value: Fitted) -> fitting.Fitted:
    """The answer to POST /fit."""
    return {
        "fit_id": value.fit_id,
        "catalog": value.catalog,
        "compaction": value.trim.to_json(),
        "budget": effective(value.budget),
        "prompt_variant": value.prompt_variant,
        "response_format": value.response_format,
        "catalog_placement": value.catalog_placement,
    }


def ranked(entries: Sequence[Ranked]) -> fitting.RankedList:
    """The answer to POST /rank."""
    return {
        "ranked": [
            {
                "id": item.id,
                "kind": item.kind,
                "score": item.score,
                "lexical": item.lexical,
                "history": item.history,
            }
            for item in entries
        ]
    }


def catalog_info(value: CatalogInfo) -> fitting.CatalogInfo:
    """A revision without its body."""
    return {
        "name": value.name,
        "revision": value.number,
        "digest": value.digest,
        "bytes": value.bytes,
        "packs": value.packs,
        "pipelines": value.pipelines,
        "created_at": value.created_at,
    }


def catalog_detail(value: CatalogInfo, body: Any) -> fitting.CatalogDetail:
    """A revision."""
    return {**catalog_info(value), "catalog": body}
