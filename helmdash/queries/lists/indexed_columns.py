"""Columns of lists by which an index has rows in the order of their time, and who asks by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from django.db.models import Model
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, In, Lookup

from helmdash.records.models import Call, Conversation, PlanRecord

_INDEXED: Final[Mapping[type[Model], frozenset[str]]] = {
    Call: frozenset(
        {"model_key", "client_name", "level", "purpose", "pack", "finish_reason", "cause"}
    ),
    Conversation: frozenset({"model_key", "client_name", "severity"}),
    PlanRecord: frozenset({"model", "caller"}),
}
# Each is looked for by itself, in half a millisecond. Of more values, hardly all are rare.
MOST_VALUES: Final = 8
# What the index of a column leaves out: SQLite uses it only where this is said, whatever else is.
LEFT_OUT: Final[Mapping[str, str]] = {"finish_reason": "stop", "cause": ""}


def asks_by_index(condition: object, model: type[Model]) -> TypeGuard[Lookup[Any]]:
    """Whether it asks for one or some values of such a column."""
    return (
        isinstance(condition, Exact | In)
        and isinstance(condition.lhs, Col)
        and condition.lhs.target.column in _INDEXED.get(model, ())
    )


def values_of(condition: Lookup[Any]) -> Sequence[Any]:
    """The values that it asks for, each once; none where another statement has them."""
    told = condition.rhs
    if isinstance(condition, In):
        return [*dict.fromkeys(told)] if isinstance(told, list | tuple | set | frozenset) else []
    return [told]
