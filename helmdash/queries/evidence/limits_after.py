"""Which limit a model will have once a suggestion is accepted, where it is another one than now.

A model that only the fallback governs has no limit, and gets a row of its own by the edit, whose
ceiling is its limit from then on. Whoever accepts another figure is to know that before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.queries.budgets import budgets
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.queries.line_edits import own_edit_in

_FIELDS = {each.name: each for each in STORED_FIELDS}
# The figure is the limit itself: its own row says so.
_WINDOW = "context_length"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitAfter:
    """In tokens. today: None: none is known. limit, critical: as they will be."""

    today: int | None
    limit: int
    critical: int | None


def limits_after(*, project_id: int, found: Iterable[SuggestionView]) -> Mapping[int, LimitAfter]:
    """By the numbers of those suggestions that change the limit without being about it. One query,
    none without suggestions."""
    asked = [each for each in found if all(change.field != _WINDOW for change in each.changes)]
    return dict(_changed(project_id, asked)) if asked else {}


def _changed(project_id: int, asked: Iterable[SuggestionView]) -> Iterator[tuple[int, LimitAfter]]:
    table = budgets.table(project_id=project_id)
    for each in asked:
        values: dict[str, Any] = {
            change.field: _FIELDS[change.field].read(change.suggested) for change in each.changes
        }
        edit = own_edit_in(
            table,
            project_id=project_id,
            model=each.model,
            model_key=each.model_key,
            changes=values,
        )
        today = table.lookup(each.model, key=each.model_key)
        after = table.with_row(replace(edit.row, **edit.changes)).lookup(
            each.model, key=each.model_key
        )
        if after.limit_tokens is not None and after.limit_tokens != today.limit_tokens:
            yield (
                each.id,
                LimitAfter(
                    today=today.limit_tokens,
                    limit=after.limit_tokens,
                    critical=after.critical_max_tokens,
                ),
            )
