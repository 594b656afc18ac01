"""Which budget rows hold an operator's own window, and not the one that HelmDash ships.

The history tells: rows are loaded with words of their own, and every later edit leaves another
row, whoever makes it and by whatever door. An edit counts as a word on the window when it changes
one of the figures that make it, or changes nothing at all: to save a row as it is confirms it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import Q

from helmdash.records.models import Budget
from helmdash.records.models.budgets import SHIPPED_REASON

_OF_THE_EDIT = frozenset({"created_at", "updated_at"})


def with_own_window() -> frozenset[int]:
    """The global rows whose window is an operator's word. One or two queries.

    Rows of a project are always an operator's.
    """
    history = Budget.history.filter(project__isnull=True)
    others = ~Q(history_change_reason=SHIPPED_REASON) | Q(history_change_reason__isnull=True)
    edited = set(history.filter(others).values_list("id", flat=True))
    if not edited:
        return frozenset()
    columns = [field.attname for field in Budget._meta.concrete_fields]
    names = ["history_change_reason", *(name for name in columns if name not in _OF_THE_EDIT)]
    rows = history.filter(id__in=edited).order_by("id", "history_id").values(*names)
    return frozenset(
        pk for pk, edits in groupby(rows, key=itemgetter("id")) if _is_operators(edits)
    )


def _is_operators(edits: Iterable[dict[str, Any]]) -> bool:
    """Whether the window, as the newest of a row's edits left it, is an operator's."""
    own = False
    before: dict[str, Any] | None = None
    for edit in edits:
        is_shipped = edit.pop("history_change_reason") == SHIPPED_REASON
        if is_shipped:
            own = False
        elif before is None or before == edit or _window(before) != _window(edit):
            own = True
        before = edit
    return own


def _window(row: dict[str, Any]) -> tuple[int | None, ...]:
    """What makes the window: the lengths, and where there are none the prompt and the reply."""
    lengths = (row["context_length"], row["input_length"])
    return lengths if any(lengths) else (*lengths, row["input_tokens"], row["output_tokens"])
