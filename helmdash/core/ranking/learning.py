"""Which of a tool's inputs say something about how its caller likes things.

Everything else in the arguments is about the task at hand, and is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEARNED_KEYS: Final = (
    "persona",
    "audience",
    "angle",
    "model",
    "theme",
    "voice",
    "persona_used",
    "kind",
    "format",
    "title",
    "author",
)
# Preferences are words; what is longer is a text that stands under such a name.
_LONGEST: Final = 120


def learned_inputs(args: Mapping[str, object]) -> dict[str, str]:
    """The preferences among a step's arguments (for a pipeline: among its inputs), stripped."""
    found: dict[str, str] = {}
    for key in LEARNED_KEYS:
        value = args.get(key)
        said = value.strip() if isinstance(value, str) else ""
        if said and len(said) <= _LONGEST:
            found[key] = said
    return found
