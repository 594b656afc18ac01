"""How each generation of Gemini is told how much to think: rows of data, the first match counts.

Efforts are turned into budgets and levels as Google's own OpenAI-compatible API turns them
(https://ai.google.dev/gemini-api/docs/openai#thinking); which model takes which is in
https://ai.google.dev/gemini-api/docs/thinking. A model that takes neither answers with a 400, so
one that is not known here is told nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from helmdash.providers.wire import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingRow:
    """What the models whose id matches take: budgets in tokens, levels by name, or neither.

    `wants_seal`: a function call in the history needs a thought signature.
    """

    ids: str
    budgets: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    wants_seal: bool = False


_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_LEVELS = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}

THINKING: tuple[ThinkingRow, ...] = (
    # Models that draw, speak or embed do not think.
    ThinkingRow(ids=r".*(?:image|tts|audio|embedding)"),
    # 2.5 Pro cannot stop thinking: 128 is its least.
    ThinkingRow(ids=r"gemini-2\.5-pro", budgets={"none": 128, **_BUDGETS}),
    ThinkingRow(ids=r"gemini-2\.5", budgets={"none": 0, **_BUDGETS}),
    ThinkingRow(ids=r"gemini-[012]\b"),
    # 3 Pro knows two levels; later Pros know three, but not "minimal".
    ThinkingRow(
        ids=r"gemini-3-pro",
        levels={"none": "low", "minimal": "low", "low": "low", "medium": "high", "high": "high"},
        wants_seal=True,
    ),
    ThinkingRow(
        ids=r"gemini-\d.*pro",
        levels={**_LEVELS, "none": "low", "minimal": "low"},
        wants_seal=True,
    ),
    ThinkingRow(
        ids=r"gemini-(?:\d|flash|pro)", levels={**_LEVELS, "none": "minimal"}, wants_seal=True
    ),
)
_UNKNOWN = ThinkingRow(ids="")


def thinking_of(model: str) -> ThinkingRow:
    """The row of a model's id (`models/…` or bare)."""
    name = model.rpartition("/")[2].lower()
    return next((row for row in THINKING if re.match(row.ids, name)), _UNKNOWN)


def thinking_config(model: str, effort: str | None, tokens: int | None) -> dict[str, Json] | None:
    """The `thinkingConfig` for an effort or a limit in tokens; None to say nothing.

    Thoughts are asked for wherever thinking is: a client that wants it wants to see it.
    """
    row = thinking_of(model)
    if effort is None and tokens is None:
        return None
    shown: dict[str, Json] = {} if effort == "none" else {"includeThoughts": True}
    if row.budgets:
        budget = tokens if tokens is not None else row.budgets.get(effort or "")
        return None if budget is None else {"thinkingBudget": budget, **shown}
    if row.levels:
        level = row.levels.get(effort or _effort_of(tokens))
        return None if level is None else {"thinkingLevel": level, **shown}
    return None


def _effort_of(tokens: int | None) -> str:
    """The smallest effort whose budget covers a limit in tokens."""
    return next((name for name, most in _BUDGETS.items() if (tokens or 0) <= most), "high")
