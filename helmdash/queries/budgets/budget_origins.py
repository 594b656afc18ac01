"""Whose word the windows of budget rows are: HelmDash's, the fallback's, or an operator's.

The history tells: rows are loaded with words of their own or made as copies, and every later edit
leaves another row, whoever makes it and by whatever door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Q

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.budgets.learned_windows import WindowBy, is_same_window, window_after
from helmdash.records.models import Budget
from helmdash.records.models.budgets import REVERTED_REASON, SHIPPED_REASON

_FIGURES: Final = tuple(each.name for each in STORED_FIELDS)
_OF_THE_EDIT: Final = ("id", "history_type", "history_change_reason", "window_copied_from")


def windows_by(rows: Sequence[Budget]) -> Mapping[int, WindowBy]:
    """Whose word the window of each row is, by its number. One or two queries.

    A row that came with HelmDash, or that a project made as a copy, keeps whose word it was until
    an edit speaks of the window.
    """
    found = {row.pk: _as_made(row.window_copied_from) for row in rows}
    found.update((row.pk, WindowBy.SHIPPED) for row in rows if row.project_id is None)
    history = Budget.history.filter(project__isnull=True)
    others = ~Q(history_change_reason=SHIPPED_REASON) | Q(history_change_reason__isnull=True)
    edited = set(history.filter(others).values_list("id", flat=True))
    edited.update(row.pk for row in rows if row.window_copied_from)
    edited.intersection_update(found)
    if edited:
        edits = Budget.history.filter(id__in=edited).order_by("id", "history_id")
        told = edits.values(*_OF_THE_EDIT, *_FIGURES)
        found.update((pk, _after_all(each)) for pk, each in groupby(told, key=itemgetter("id")))
    return found


def _as_made(copied_from: str) -> WindowBy:
    return WindowBy(copied_from) if copied_from else WindowBy.OPERATOR


def _after_all(edits: Iterable[dict[str, Any]]) -> WindowBy:
    """Whose word the window is, as the newest of a row's edits left it."""
    by = WindowBy.OPERATOR
    # Newest first: the figures that each edit left, and whose word the window was.
    earlier: list[tuple[WindowBy, dict[str, Any]]] = []
    for edit in edits:
        figures = {name: edit[name] for name in _FIGURES}
        why = edit["history_change_reason"] or ""
        if why == SHIPPED_REASON:
            by = WindowBy.SHIPPED
        elif not earlier:
            by = _as_made(edit["window_copied_from"])
        elif edit["history_type"] == "~" and not why.startswith(REVERTED_REASON):
            by = window_after(by, earlier[0][1], figures)
        else:
            # To delete a row, to bring it back and to take an edit back says nothing of one's own.
            by = _of_earlier(earlier, figures)
        earlier.insert(0, (by, figures))
    return by


def _of_earlier(
    earlier: Iterable[tuple[WindowBy, Mapping[str, Any]]], figures: Mapping[str, Any]
) -> WindowBy:
    """Whose word the window was when it last was as in these figures."""
    alike = (by for by, was in earlier if is_same_window(by, was, figures))
    return next(alike, WindowBy.OPERATOR)
