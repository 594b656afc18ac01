"""What a Trim's receipt says beside its steps: labels that saved no bytes, in words.

A receipt may have been written by another version: what is missing or of another form is left
out or shown as it is, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.catalog.trim import LOW_CONFIDENCE

_FILTER = re.compile(r"llm_filter\(picks=(\d+),kept=(\d+)\)")
_OVER = re.compile(r"still_over_budget\((\d+)>(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A label of `dropped` that is no step. `words` is "" for one that is not known here."""

    label: str
    words: str


def flags(trim: object) -> tuple[Flag, ...]:
    """The labels of a receipt that are not among its steps, in their order."""
    if not isinstance(trim, Mapping):
        return ()
    steps = {step.get("label") for step in _list(trim.get("steps")) if isinstance(step, Mapping)}
    labels = [each for each in _list(trim.get("dropped")) if isinstance(each, str)]
    return tuple(Flag(label=each, words=_words(each)) for each in labels if each not in steps)


def _words(label: str) -> str:
    if label == LOW_CONFIDENCE:
        return "The ranking was in doubt"
    if told := _FILTER.fullmatch(label):
        picks, kept = int(told[1]), int(told[2])
        return f"The filter picked {picks:,}, {kept:,} of them shown"
    if told := _OVER.fullmatch(label):
        return f"Still too large: {int(told[1]):,} bytes, with room for {int(told[2]):,}"
    return ""


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
