"""From when to when rows are looked for, said once."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeGuard, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.expressions import Col
from django.db.models.lookups import (
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Lookup,
)

_M = TypeVar("_M", bound=Model)
_Kinds = tuple[type, type]

# Lookups that bound a column from below, and from above; of each the stricter one first.
_BELOW: Final[_Kinds] = (GreaterThan, GreaterThanOrEqual)
_ABOVE: Final[_Kinds] = (LessThan, LessThanOrEqual)


def bounded(rows: QuerySet[_M], field: str, **bounds: datetime) -> QuerySet[_M]:
    """The rows whose `field` is within some bounds too (gt, gte, lt, lte), as `filter` narrows
    them; but of two bounds on one side only the narrower is said.

    SQLite finds rows by the bound that is written first and tries the other on each of them: the
    last page of a range, behind a cursor, would walk past all that come before it.
    """
    for word, at in bounds.items():
        rows = _narrowed(rows, rows.filter(**{f"{field}__{word}": at}))
    return rows


def _narrowed(rows: QuerySet[_M], narrower: QuerySet[_M]) -> QuerySet[_M]:
    """The narrower rows, which have a condition more. Both are to find the same."""
    where = narrower.query.where
    new = where.children[-1]
    kinds = next((kinds for kinds in (_BELOW, _ABOVE) if isinstance(new, kinds)), None)
    if kinds is None or not isinstance(new, Lookup):
        # Rows of two queries put together by OR have conditions within conditions.
        return narrower
    told = [each for each in where.children[:-1] if _is_like(each, new, kinds)]
    if any(_is_as_narrow(each, new, kinds) for each in told):
        return rows
    needless = {id(each) for each in told}
    where.children = [each for each in where.children if id(each) not in needless]
    return narrower


def _is_like(each: object, new: Lookup[Any], kinds: _Kinds) -> TypeGuard[Lookup[Any]]:
    """Whether it bounds the same column on the same side, by a moment."""
    return (
        isinstance(each, Lookup)
        and isinstance(each, kinds)
        and isinstance(each.lhs, Col)
        and each.lhs == new.lhs
        and isinstance(each.rhs, datetime)
    )


def _is_as_narrow(each: Lookup[Any], new: Lookup[Any], kinds: _Kinds) -> bool:
    strict, _ = kinds
    if each.rhs == new.rhs:
        return isinstance(each, strict) or not isinstance(new, strict)
    return bool(each.rhs > new.rhs) is (kinds is _BELOW)
