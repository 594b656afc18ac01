"""A budget table as plain JSON and back: a what-if keeps the one that it was asked of, so that its
figures stay true however budgets are edited after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

from helmdash.core.budgets.budget_table import BudgetTable, TableParts
from helmdash.core.budgets.budgets import STORED_FIELDS, Alias, BudgetSpec
from helmdash.core.budgets.figures import FigureField
from helmdash.core.budgets.learned_windows import Variant, WindowBy, WindowReport, WindowSource
from helmdash.core.budgets.published import NO_LIST, PublishedList

# What a row says beside its figures; its evidence decides nothing, and may be long.
_LEFT_OUT: Final = frozenset({"evidence"})
_FIELDS: Final = tuple(each for each in STORED_FIELDS if each.name not in _LEFT_OUT)


def table_to_json(table: BudgetTable) -> dict[str, object]:
    """All that decides what the table answers."""
    parts = table.parts
    return {
        "rows": [row_to_json(row) for row in parts.rows],
        "aliases": [[each.prefix, each.target] for each in parts.aliases],
        "shipped": _numbers(parts.rows, WindowBy.SHIPPED),
        # Beside them, since a release before it knows those alone.
        "fallback": _numbers(parts.rows, WindowBy.FALLBACK),
        "windows": [
            [
                each.key,
                each.source.value,
                each.tokens,
                each.seen_at.isoformat() if each.seen_at else None,
                each.call_id,
            ]
            for each in parts.windows
        ],
        # Beside them: a release that does not know these moments reads the windows as they were.
        "told_at": [each.told_at.isoformat() if each.told_at else None for each in parts.windows],
        "variants": [[each.prefix, each.context_length] for each in parts.variants],
    }


def table_from_json(
    stored: Mapping[str, Any], *, published: PublishedList = NO_LIST
) -> BudgetTable:
    """The table of `table_to_json`, with the list of published figures, which is not stored."""
    by = dict.fromkeys(stored["shipped"], WindowBy.SHIPPED)
    by.update(dict.fromkeys(stored.get("fallback", ()), WindowBy.FALLBACK))
    rows = map(row_from_json, stored["rows"])
    return TableParts(
        rows=tuple(
            replace(row, window_by=by.get(row.budget_id, WindowBy.OPERATOR)) for row in rows
        ),
        aliases=tuple(Alias(prefix=prefix, target=target) for prefix, target in stored["aliases"]),
        windows=tuple(
            WindowReport(
                key=key,
                source=WindowSource(source),
                tokens=tokens,
                seen_at=datetime.fromisoformat(seen_at) if seen_at else None,
                call_id=call_id,
                told_at=datetime.fromisoformat(told_at) if told_at else None,
            )
            for (key, source, tokens, seen_at, call_id), told_at in zip_longest(
                stored["windows"], stored.get("told_at", ())
            )
        ),
        variants=tuple(
            Variant(prefix=prefix, context_length=length) for prefix, length in stored["variants"]
        ),
        published=published,
    ).table()


def _numbers(rows: Iterable[BudgetSpec], by: WindowBy) -> list[int]:
    return sorted(
        row.budget_id for row in rows if row.budget_id is not None and row.window_by is by
    )


def row_to_json(row: BudgetSpec) -> dict[str, object]:
    """A row without its evidence."""
    figures = {each.name: plain(getattr(row, each.name)) for each in _FIELDS}
    return {"id": row.budget_id, "project": row.project, **figures}


def row_from_json(stored: Mapping[str, Any]) -> BudgetSpec:
    """The row of `row_to_json`."""
    figures = {each.name: _read(each, stored) for each in _FIELDS if each.name in stored}
    return BudgetSpec(**figures, budget_id=stored["id"], project=stored["project"])


def plain(value: object) -> object:
    """A figure as JSON has it."""
    return str(value) if isinstance(value, str) else value


def _read(field: FigureField, stored: Mapping[str, Any]) -> Any:
    value = stored[field.name]
    return None if value is None else field.read(value)
