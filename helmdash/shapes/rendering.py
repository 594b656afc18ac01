"""Response bodies that several faces share, made of values; nothing is decided here."""

from __future__ import annotations

from helmdash.core.budgets.budgets import BudgetFigures, EffectiveBudget
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.learned_windows import WindowClaim, WindowReport
from helmdash.core.budgets.levels import HELD
from helmdash.core.calls.failures import Cause
from helmdash.core.conversations.clients import Client
from helmdash.operations.care import Cleared
from helmdash.operations.fitting.fits import Fitted
from helmdash.operations.recording.calls import Recorded
from helmdash.queries.care import CareView, ReminderView
from helmdash.queries.conversations import ConversationView
from helmdash.shapes import answers, care


def health(value: Health) -> answers.Health:
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


def cause(value: Cause | None) -> answers.Cause | None:
    """The Cause object; null where the call was fine."""
    if value is None:
        return None
    return {
        "name": value.name,
        "rule": value.rule,
        "advice": value.advice,
        "detail": value.detail,
    }


def client(value: Client | None) -> answers.Client | None:
    """The program that made a call; null where it is not known."""
    return None if value is None else {"name": value.name, "version": value.version or None}


def recorded(value: Recorded) -> answers.Recorded:
    """The answer to a recorded call."""
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


def standing(value: ConversationView) -> answers.Standing:
    """How a conversation stands."""
    return {
        "id": value.id,
        "model": value.model,
        "model_key": value.model_key,
        "client": client(value.client),
        "client_window": value.client_window,
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
    }


def remediation(value: CareView) -> care.RemediationState:
    """What is being done about the level."""
    return {
        "active": value.level in HELD,
        "level": value.level,
        "grace_left": value.grace_left,
        "countdown": value.countdown,
        "next_hard_in": value.next_hard_in,
        "followed": value.followed,
        "braked_at": value.braked_at,
    }


def reminder(value: ReminderView) -> care.Reminder:
    """A reminder."""
    return {
        "id": value.id,
        "position": value.position,
        "kind": "re_entry" if value.kind == "re_entry" else "note",
        "content": value.content,
        "updated_at": value.updated_at,
    }


def cleared(value: Cleared) -> care.Cleared:
    """What a new round begins with."""
    return {
        "round": value.round_number,
        "package": value.package,
        "carried": list(value.carried),
    }


def fitted(value: Fitted) -> answers.Fitted:
    """The answer to a fit."""
    return {
        "fit_id": value.fit_id,
        "catalog": value.catalog,
        "compaction": value.trim.to_json(),
        "budget": effective(value.budget),
        "prompt_variant": value.prompt_variant,
        "response_format": value.response_format,
        "catalog_placement": value.catalog_placement,
    }


def effective(value: EffectiveBudget) -> answers.Effective:
    """The figures that hold for a model."""
    return {
        "model": value.model,
        **figures(value),
        "rule": value.rule,
        "budget_id": value.budget_id,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "limit_tokens": value.limit_tokens,
        "limit_source": value.limit_source,
        "windows": [_claim(claim) for claim in value.claims],
        "limit_disproved": _disproved(value.disproved_by),
        "optimal_source": value.optimal_source,
        "critical_source": value.critical_source,
    }


def _claim(value: WindowClaim) -> answers.WindowClaim:
    return {
        "source": value.source,
        "tokens": value.tokens,
        "state": value.state,
        "is_operators": value.is_operators,
        "seen_at": value.seen_at,
        "call_id": value.call_id or None,
    }


def _disproved(value: WindowReport | None) -> answers.LimitDisproved | None:
    if value is None:
        return None
    return {
        "prompt_tokens": value.tokens,
        "seen_at": value.seen_at,
        "call_id": value.call_id or None,
    }


def figures(value: BudgetFigures) -> answers.Figures:
    """What a row and an effective budget share."""
    return {
        "key": value.key,
        "input_tokens": value.input_tokens,
        "output_tokens": value.output_tokens,
        "max_catalog_bytes": value.max_catalog_bytes,
        "tier": value.tier,
        "allows_llm_filter": value.allows_llm_filter,
        "filter_model": value.filter_model,
        "fallback_model": value.fallback_model,
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
