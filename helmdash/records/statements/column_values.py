"""The values of rows as the database's driver wants them, by the columns of their model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, cast

import orjson
from django.db import connection, models

from helmdash.records.statements.direct import is_postgres

Converter = Callable[[Any], Any]

# How JSON writes the one character that PostgreSQL stores in no text and in no jsonb.
_ESCAPED_NUL = "\\u0000"
_SURROGATE = re.compile("[\ud800-\udfff]")


@cache
def columns_of(
    model: type[models.Model], names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[Converter | None, ...]]:
    """Column names and how to convert each; asked once for each shape of row."""
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in names]
    return tuple(str(field.column) for field in fields), tuple(map(converter_of, fields))


def converter_of(field: models.Field[Any, Any]) -> Converter | None:
    if isinstance(field, models.JSONField):
        return _to_json
    if isinstance(field, models.DateTimeField):
        return _time_converter()
    if isinstance(field, models.CharField | models.TextField):
        return _to_text
    return None


def _time_converter() -> Converter | None:
    """SQLite keeps times as text; psycopg takes them as they are."""
    if is_postgres():
        return None
    return _sqlite_time


# Most times of a batch are the same moment.
@lru_cache(maxsize=1024)
def _sqlite_time(value: datetime) -> str:
    if value.tzinfo is UTC:
        # What Django's own writes, in a tenth of the time.
        return value.replace(tzinfo=None).isoformat(" ")
    return cast("str", connection.ops.adapt_datetimefield_value(value))


def values_of(
    rows: Sequence[Mapping[str, Any]],
    names: tuple[str, ...],
    converters: tuple[Converter | None, ...],
) -> list[list[Any]]:
    """The rows as the driver wants them; only columns that need it are converted.

    There are two names at least. A call has dozens of words, most of them empty: all words of all
    rows are looked through at once, and one by one only where there is one that cannot be stored.
    """
    plan = _plan_of(names, converters)
    given = [list(plan.take(row)) for row in rows]
    is_plain = not plan.texts or _are_storable(given, plan.texts)
    for place, convert in plan.others if is_plain else plan.all:
        for values in given:
            value = values[place]
            if value is not None and (value != "" or convert is _to_json):
                values[place] = convert(value)
    return given


class _Plan(NamedTuple):
    """How rows of one shape are converted. take: their values in order. texts: the places of words.
    others: what else is converted, by its places; all: with the words."""

    take: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    texts: tuple[int, ...]
    others: tuple[tuple[int, Converter], ...]
    all: tuple[tuple[int, Converter], ...]


@cache
def _plan_of(names: tuple[str, ...], converters: tuple[Converter | None, ...]) -> _Plan:
    everything = tuple((at, convert) for at, convert in enumerate(converters) if convert)
    others = tuple(each for each in everything if each[1] is not _to_text)
    texts = tuple(at for at, convert in everything if convert is _to_text)
    return _Plan(itemgetter(*names), texts, others, everything)


def _are_storable(rows: Sequence[Sequence[Any]], places: Sequence[int]) -> bool:
    """Whether `_to_text` would leave all texts at these places of the rows as they are."""
    texts = "".join([text for row in rows for place in places if (text := row[place])])
    if "\0" in texts:
        return False
    if texts.isascii():
        return True
    try:
        texts.encode()
    except UnicodeEncodeError:
        return False
    return True


def _to_json(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # whole numbers beyond 64 bits, lone surrogates
        return _dump_storable(value)
    return _dump_storable(value) if _ESCAPED_NUL in text else text


def _dump_storable(value: Any) -> str:
    return json.dumps(storable(value), ensure_ascii=False, separators=(",", ":"))


def _to_text(value: str) -> str:
    """The text with U+FFFD for what PostgreSQL cannot store: NUL and lone surrogates."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if not value.isascii():
        value = _SURROGATE.sub("\ufffd", value)
    return value


def storable(value: Any) -> Any:
    """A JSON value with U+FFFD in its texts, and null in its numbers, where it cannot be stored."""
    match value:
        case str():
            return _to_text(value)
        case Mapping():
            return {_to_text(str(key)): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case float() if not math.isfinite(value):
            return None  # as orjson writes it
        case _:
            return value
