"""Cursors: where a list goes on, as an opaque word in a link or an API answer."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from django.db.models import Model, QuerySet

from helmdash.records.bounds import bounded

Item = TypeVar("Item")
_M = TypeVar("_M", bound=Model)

# The longest that a list gives out, a sorted one's with two times and three numbers, has half.
_MOST_CHARS: Final = 500


class BadCursor(ValueError):
    """The cursor is not one we gave out; start again without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Item]):
    """One page of a list; `next` is None on the last one."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The ids that a list shows before and after one of its items; None: it ends there."""

    before: str | None = None
    after: str | None = None


def older(rows: QuerySet[_M], field: str, at: datetime, pk: int) -> QuerySet[_M]:
    """The rows that follow one in a list with the newest first, from the nearest on."""
    behind = bounded(rows, field, lte=at).exclude(**{field: at}, id__gte=pk)
    return behind.order_by(f"-{field}", "-id")


def newer(rows: QuerySet[_M], field: str, at: datetime, pk: int) -> QuerySet[_M]:
    """The rows that go before one in a list with the newest first, from the nearest on."""
    ahead = bounded(rows, field, gte=at).exclude(**{field: at}, id__lte=pk)
    return ahead.order_by(field, "id")


def onward(
    rows: QuerySet[_M], field: str, after: tuple[datetime, int] | None, *, is_ahead: bool
) -> QuerySet[_M]:
    """The rows of a list by time that come after one; None: from its first. is_ahead: of the list
    with the oldest first."""
    if after is not None:
        return (newer if is_ahead else older)(rows, field, *after)
    return rows.order_by(*((field, "id") if is_ahead else (f"-{field}", "-id")))


def oldest_first(rows: QuerySet[_M], field: str, *, chunk: int) -> Iterator[list[_M]]:
    """All rows, `chunk` at a time, which is all that is in memory however many there are.

    Page by page, and not by a cursor of the database: behind a pooler that gives each transaction
    another connection a cursor is gone with the first. A row whose time moves on meanwhile may come
    a second time, as it is then; none is left out.
    """
    ordered = rows.order_by(field, "id")
    found = list(ordered[:chunk])
    while found:
        yield found
        at, pk = getattr(found[-1], field), found[-1].pk
        rest = bounded(ordered, field, gte=at).exclude(**{field: at}, id__lte=pk)
        found = list(rest[:chunk]) if len(found) == chunk else []


def newest_first(rows: QuerySet[_M], field: str, *, chunk: int) -> Iterator[list[_M]]:
    """As `oldest_first`, the other way; a row whose time moves on meanwhile may be left out."""
    found = list(rows.order_by(f"-{field}", "-id")[:chunk])
    while found:
        yield found
        at, pk = getattr(found[-1], field), found[-1].pk
        found = list(older(rows, field, at, pk)[:chunk]) if len(found) == chunk else []


def encode_cursor(*parts: str | int | datetime) -> str:
    """The sort key of the last item shown, packed."""
    plain = [part.isoformat() if isinstance(part, datetime) else part for part in parts]
    packed = json.dumps(plain, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_time_cursor(cursor: str) -> tuple[datetime, int]:
    """The time and the primary key that a cursor stands for. Raises BadCursor for anything else."""
    moment, number = decode_parts(cursor, 2)
    try:
        at = datetime.fromisoformat(str(moment))
        if at.tzinfo is None:
            raise BadCursor("cursor")
        # Here: at the edge of the calendar another zone's time is none of UTC, as databases ask.
        at = at.astimezone(UTC)
        pk = int(number)
    except (ValueError, OverflowError) as error:
        raise BadCursor("cursor") from error
    if abs(pk) > 2**62:
        raise BadCursor("cursor")
    return at, pk


def decode_ranked_cursor(cursor: str) -> tuple[int, datetime, int]:
    """A (severity, time, id) cursor. Raises BadCursor."""
    rank, moment, number = decode_parts(cursor, 3)
    at, pk = decode_time_cursor(encode_cursor(moment, number))
    if not isinstance(rank, int) or not 0 <= rank <= 9:
        raise BadCursor("cursor")
    return rank, at, pk


def decode_number_cursor(cursor: str) -> int:
    """The number that a cursor stands for. Raises BadCursor for what is not one number."""
    (number,) = decode_parts(cursor, 1)
    if not isinstance(number, int) or not 0 <= number <= 2**62:
        raise BadCursor("cursor")
    return number


def decode_pair_cursor(cursor: str) -> tuple[int, int]:
    """The two numbers that a cursor stands for. Raises BadCursor for what is not two of them."""
    first, second = decode_parts(cursor, 2)
    for number in (first, second):
        if not isinstance(number, int) or not 0 <= number <= 2**62:
            raise BadCursor("cursor")
    return int(first), int(second)


def decode_parts(cursor: str, count: int) -> list[str | int]:
    """What was packed, which the caller looks at. Raises BadCursor for anything of another number
    of parts, or of other kinds."""
    if len(cursor) > _MOST_CHARS:
        raise BadCursor("cursor")
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadCursor("cursor") from error
    if (
        not isinstance(parts, list)
        or len(parts) != count
        or not all(isinstance(part, str | int) for part in parts)
    ):
        raise BadCursor("cursor")
    return parts
