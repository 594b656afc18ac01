"""Objects that several answers hold."""

from __future__ import annotations

from helmdash.api.schemas import common
from helmdash.core.failures import Cause
from helmdash.core.health import Health


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
