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
from helmdash.core.budgets.learned_windows import WindowBy
from helmdash.core.budgets.window_edits import window_after
from helmdash.records.models import Budget
from helmdash.records.models.budgets import SHIPPED_REASON

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
    before: dict[str, Any] | None = None
    for edit in edits:
        figures = {name: edit[name] for name in _FIGURES}
        if edit["history_change_reason"] == SHIPPED_REASON:
            by = WindowBy.SHIPPED
        elif before is None:
            by = _as_made(edit["window_copied_from"])
        elif edit["history_type"] == "~":  # to delete it, or to bring it back, confirms nothing
            by = window_after(by, before, figures)
        before = figures
    return by
