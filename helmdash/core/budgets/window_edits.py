"""Whose word the window of a budget row is once somebody has edited the row (ADR 24).

Whoever changes another figure, a price say, has said nothing of the window: what servers and
refusals tell of it counts as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helmdash.core.budgets.learned_windows import WindowBy

_LENGTHS = ("context_length", "input_length")


def window_after(by: WindowBy, was: Mapping[str, Any], now: Mapping[str, Any]) -> WindowBy:
    """Whose word a row's window is, which was `by`'s before an edit: the operator's where a figure
    that makes the window has changed, or where none has at all, which confirms it. There is none to
    confirm where nobody knows one.

    was, now: all figures of the row by name, before and after the edit.
    """
    confirmed = was == now and by is not WindowBy.FALLBACK
    return WindowBy.OPERATOR if confirmed or not is_same_window(by, was, now) else by


def with_told_window(
    by: WindowBy, was: Mapping[str, Any], changes: Mapping[str, Any], *, told: int | None
) -> Mapping[str, Any]:
    """The figures that an edit of a model stores, by name. told: the window (tokens) in force that
    others told; None: none.

    Where the edit speaks of the window the row's counts from then on, so what was told becomes the
    row's unless the edit names another one: a lower ceiling of prompts is not to bring the limit
    down to it.
    """
    speaks = window_after(by, was, {**was, **changes}) is WindowBy.OPERATOR
    return {"context_length": told, **changes} if speaks and told is not None else changes


def is_same_window(by: WindowBy, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether figures that make the window of a row are the same. by: whose word it was."""
    return _window(by, was) == _window(by, now)


def _window(by: WindowBy, figures: Mapping[str, Any]) -> tuple[int | None, ...]:
    """What makes the window: the lengths, and where there are none the prompt and the reply. A
    window that nobody knows is not told by a longer reply."""
    names = list(_LENGTHS)
    if not any(figures[name] for name in _LENGTHS):
        names += ["input_tokens"] if by is WindowBy.FALLBACK else ["input_tokens", "output_tokens"]
    return tuple(figures[name] for name in names)
