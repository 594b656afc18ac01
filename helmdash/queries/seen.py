"""Which values a column of the calls table holds, for the filters of the pages."""

from __future__ import annotations

from helmdash.records.querysets import Column, distinct_values


def values(*, project_id: int, column: Column) -> tuple[str, ...]:
    """Distinct values of a column, in order; the empty one left out. One query."""
    return distinct_values(project_id, column)
