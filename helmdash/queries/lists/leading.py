"""Which of several filters a list looks by, where each has an index and the others are then tried.

A database finds rows by one index and tries what else is asked for on each of them, through all
there are where few or none fit: of a model that never was critical all its calls, or all critical
ones. SQLite, which knows its values by samples, may even take the index of the value that most rows
have. So a page looks by the filter that leaves fewest, and at so many of its rows only
(queries.lists.reach).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db.models import Func, Model, QuerySet
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, Lookup
from django.db.models.sql.where import WhereNode

from helmdash.queries.lists.indexed_columns import LEFT_OUT, MOST_VALUES, asks_by_index, values_of
from helmdash.queries.lists.reach import Reach, reach_of
from helmdash.records.statements.direct import is_postgres

# Who is asked for by one of these has few rows anyhow.
_NARROW: Final = frozenset({"id", "conversation_id", "parent_id"})
# Conditions that go with any filter: every index begins with the project, and has the time.
_PLAIN: Final = frozenset({"project_id", "started_at", "latest_at"})

_M = TypeVar("_M", bound=Model)


class _Tried(Func):
    """A column that SQLite does not look for by an index."""

    template = "+%(expressions)s"
    arity = 1


def led(
    rows: QuerySet[_M],
    field: str,
    beside: tuple[datetime, int] | None = None,
    *,
    is_tried: bool,
    is_ahead: bool = False,
    most: int,
    among: QuerySet[_M] | None = None,
) -> tuple[QuerySet[_M], Reach | None]:
    """The rows, to be found by one of their filters, and how far one page looks for them: beside a
    row, or from the newest on (is_ahead: the oldest). They are not narrowed to that yet.

    rows: what indexes find, in no order. is_tried: more is asked for, which is tried on each of
    them. among: those of the rows of which only so many are looked at; None: all. Reach None: to
    the end, for nothing is tried, or there are no more than `most`. A query for each filter that
    has an index, one where there is none; where several leave no more than `most`, one more for
    each of these.
    """
    among = rows if among is None else among
    conditions: Sequence[Any] = rows.query.where.children
    asked = [each for each in conditions if _is_asked(each, rows)]
    able = [each for each in asked if _may_lead(each)]
    if rows.query.is_empty() or any(_column(each) in _NARROW for each in conditions):
        able = []
    if not able or not (is_tried or len(asked) > 1):
        looked = reach_of(among, field, beside, is_ahead=is_ahead, most=most) if is_tried else None
        return rows, looked
    alone = [_alone(among, each) for each in able]
    reached = [reach_of(part, field, beside, is_ahead=is_ahead, most=most) for part in alone]
    whole = [n for n, looked in enumerate(reached) if looked is None]
    if len(whole) > 1:
        best = min(whole, key=lambda n: alone[n][:most].count())
    else:
        best = whole[0] if whole else _farthest(reached, is_ahead=is_ahead)
    return _found_by(rows, able[best], asked), reached[best]


def _farthest(reached: Sequence[Reach | None], *, is_ahead: bool) -> int:
    ends = [(looked.last, n) for n, looked in enumerate(reached) if looked is not None]
    return (max if is_ahead else min)(ends)[1]


def _is_asked(condition: object, rows: QuerySet[Any]) -> bool:
    """Whether an index serves it: some values, or any cause at all."""
    if asks_by_index(condition, rows.model):
        return True
    others: Sequence[object] = rows.query.where.children
    return _is_any_cause(condition) and "cause" not in map(_column, others)


def _is_any_cause(condition: object) -> bool:
    """Whether it says what the index of those that failed does: `~Q(cause="")`."""
    if not isinstance(condition, WhereNode) or not condition.negated:
        return False
    (only, *more) = condition.children
    return not more and isinstance(only, Exact) and _column(only) == "cause" and only.rhs == ""


def _may_lead(condition: object) -> bool:
    """Whether an index has its rows, in the order of their time. That of all that failed has no
    cause in it, which SQLite then looks at in each row."""
    if not isinstance(condition, Lookup):
        return False
    told = values_of(condition)
    left_out = LEFT_OUT.get(_column(condition) or "")
    return 1 <= len(told) <= MOST_VALUES and left_out not in told


def _column(condition: object) -> str | None:
    """The column that a condition asks for; None where it is none of one column."""
    if not isinstance(condition, Lookup) or not isinstance(condition.lhs, Col):
        return None
    return condition.lhs.target.column


def _alone(rows: QuerySet[_M], lead: object) -> QuerySet[_M]:
    """The rows of one filter, whatever else is asked for: an index has all that this says."""
    part, column = rows.all(), _column(lead)
    conditions: Sequence[Any] = part.query.where.children
    part.query.where.children = [
        each for each in conditions if each == lead or _column(each) in _PLAIN
    ]
    if column is None or column not in LEFT_OUT:
        return part
    return part.exclude(**{column: LEFT_OUT[column]})


def _found_by(rows: QuerySet[_M], lead: object, asked: Sequence[object]) -> QuerySet[_M]:
    """The same rows; SQLite looks for them by no other filter."""
    if is_postgres():
        return rows
    found = rows.all()
    conditions: Sequence[Any] = found.query.where.children
    found.query.where.children = [
        _tried(each) if each in asked and each != lead else each for each in conditions
    ]
    return found


def _tried(condition: Any) -> Any:
    if not isinstance(condition, Lookup):
        return condition
    column = _Tried(condition.lhs, output_field=condition.lhs.output_field)
    return type(condition)(column, condition.rhs)
