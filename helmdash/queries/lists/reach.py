"""How far a list looks for one page, where terms of a query are tried on one row after another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from django.db.models import Model, QuerySet

from helmdash.queries.lists.by_value import by_value
from helmdash.queries.lists.paging import newer, older
from helmdash.records.bounds import bounded

# Rows on which terms without an index are tried for one page: some tens of milliseconds.
MOST_TRIED: Final = 20_000

_M = TypeVar("_M", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """`last` is the last row that is looked at, as its moment (of `field`) and its key. is_ahead:
    from older to newer ones."""

    field: str
    last: tuple[datetime, int]
    is_ahead: bool = False

    def within(self, rows: QuerySet[_M]) -> QuerySet[_M]:
        """The rows down (or up) to the last one."""
        at, pk = self.last
        if self.is_ahead:
            return bounded(rows, self.field, lte=at).exclude(**{self.field: at, "id__gt": pk})
        return bounded(rows, self.field, gte=at).exclude(**{self.field: at, "id__lt": pk})


def reach_of(
    rows: QuerySet[_M],
    field: str,
    beside: tuple[datetime, int] | None = None,
    *,
    is_ahead: bool = False,
    most: int = MOST_TRIED,
) -> Reach | None:
    """How far a list looks that begins at the newest row (is_ahead: the oldest), or beside one.

    rows: what indexes leave. None: to the end, as there are no more than `most`. One query; of rows
    of several values one for each, and of each value its share of `most` at least.
    """
    if beside is not None:
        rows = (newer if is_ahead else older)(rows, field, *beside)
    else:
        rows = rows.order_by(*((field, "id") if is_ahead else (f"-{field}", "-id")))
    parts = by_value(rows)
    share = max(most // len(parts), 1)
    ends = [list(part.values_list(field, "id")[share - 1 : share + 1]) for part in parts]
    # The nearest: beyond it a value has more rows than are looked at.
    last = (min if is_ahead else max)((end[0] for end in ends if len(end) > 1), default=None)
    return None if last is None else Reach(field=field, last=last, is_ahead=is_ahead)
