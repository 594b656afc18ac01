"""Care of a conversation as it leaves."""

from __future__ import annotations

from helmdash.api.schemas import care as shapes
from helmdash.operations.care import Advanced


def advanced(value: Advanced) -> shapes.Advanced:
    """What to do before a generation."""
    return {
        "action": value.action,
        "strength": value.strength,
        "text": value.text,
        "persist": value.persist,
        "remaining": value.remaining,
        "round": value.round_number,
        "carry": list(value.carry),
        "package": value.package,
        "generation": value.generation,
        "reason": value.reason,
    }
