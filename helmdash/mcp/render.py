"""Values as they leave: the shapes of the JSON API (design api.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from helmdash.core.budgets import EffectiveBudget
from helmdash.core.failures import Cause
from helmdash.core.health import Health
from helmdash.operations.fitting import Fitted
from helmdash.operations.recording import Recorded
from helmdash.queries.conversations import ConversationView

Body = dict[str, Any]

# Where a row stands and who may see it is the operator's affair.
_INNER = frozenset({"project"})


def health(value: Health) -> Body:
    """The Health object."""
    return asdict(value)


def cause(value: Cause | None) -> Body | None:
    """The Cause object; null where the call was fine."""
    return None if value is None else asdict(value)


def effective(value: EffectiveBudget) -> Body:
    """The figures that hold for a model."""
    return {name: figure for name, figure in asdict(value).items() if name not in _INNER}


def recorded(value: Recorded) -> Body:
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


def fitted(value: Fitted) -> Body:
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


def conversation(value: ConversationView) -> Body:
    """How a conversation stands."""
    return {
        "id": value.id,
        "model": value.model,
        "round": value.round_number,
        "generation": value.generation,
        "health": health(value.health),
        "known_level": value.known_level,
        "remediation": {"active": False},
        "counts": {
            # Calls are numbered without a gap, so the newest number is their count.
            "calls": value.generation,
            "rounds": value.round_number,
            "failures": value.failures,
            "trims": value.trims,
        },
        "latest_at": value.latest_at,
    }
