"""What the tables say of single columns, asked of whole columns of rows before they are written.

SQLite evaluates some forty conditions for each call, and parses each JSON column to see whether it
is JSON: 15 of the 40 us that it takes to insert a call with its indexes. The connection that
recording has for itself leaves them out (operations.recorder.own_connection), and this asks the
same of a batch at once: no count is below zero, and words of closed sets are known. JSON is as our
writer makes it. Conditions over several columns are met by how rows are made, and tested where the
database evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import IntegrityError, models

_COUNTS = (
    models.PositiveBigIntegerField,
    models.PositiveIntegerField,
    models.PositiveSmallIntegerField,
)


def require_possible(
    model: type[models.Model], names: tuple[str, ...], rows: Sequence[Sequence[Any]]
) -> None:
    """Raises IntegrityError, as the database does, where a row holds what its table refuses."""
    asked = _conditions(model, names)
    if asked.counts_of is not None:
        # All counts of all rows at once; no zeros and no nulls are looked at.
        told = chain.from_iterable(map(asked.counts_of, rows))
        if min(filter(None, told), default=0) < 0:
            place = next(at for at in asked.counts for row in rows if (row[at] or 0) < 0)
            raise IntegrityError(f"{model.__name__}.{names[place]} is below zero")
    for place, known in asked.words:
        if not known.issuperset([row[place] for row in rows]):
            raise IntegrityError(f"{model.__name__}.{names[place]} is none of its words")


class _Conditions(NamedTuple):
    """counts: their places. counts_of: takes them from a row; None: there are none. words: places
    with all that each may be."""

    counts: tuple[int, ...]
    counts_of: Callable[[Sequence[Any]], tuple[Any, ...]] | None
    words: tuple[tuple[int, frozenset[str | None]], ...]


@cache
def _conditions(model: type[models.Model], names: tuple[str, ...]) -> _Conditions:
    kinds = {field.attname: field for field in model._meta.concrete_fields}
    sets = closed_sets(model)
    counts = tuple(at for at, name in enumerate(names) if isinstance(kinds[name], _COUNTS))
    words = tuple((at, sets[name]) for at, name in enumerate(names) if name in sets)
    # Of a single place it would not give a tuple.
    return _Conditions(counts, itemgetter(*counts, counts[0]) if counts else None, words)


def closed_sets(model: type[models.Model]) -> dict[str, frozenset[str | None]]:
    """The words that the constraints of a model leave to its columns; null is none."""
    found: dict[str, frozenset[str | None]] = {}
    for each in model._meta.constraints:
        if not isinstance(each, models.CheckConstraint):
            continue
        children = getattr(each.condition, "children", [])
        if len(children) != 1 or not isinstance(children[0], tuple):
            continue
        name, _, how = str(children[0][0]).rpartition("__")
        if how == "in":
            found[name] = frozenset([None, *children[0][1]])
    return found
