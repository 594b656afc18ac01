"""The kinds of parameters that queries are made of; those of bodies are in doors.bodies.fields."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from helmdash.core.text.query_terms import MOST_CHARS
from helmdash.doors.bodies.fields import NO_NUL, parse_moment

# Everything arrives as text.
QUERY = ConfigDict(extra="forbid")

# In a query "+" is a space; an offset that was not escaped arrives like this.
_UNESCAPED_OFFSET = re.compile(r" (\d\d:\d\d)$")


def _parse_bound(value: object) -> datetime:
    """A bound of a time range: any year, cut to what a database can compare."""
    moment = parse_moment(_UNESCAPED_OFFSET.sub(r"+\1", value) if isinstance(value, str) else value)
    if moment.year <= 1:
        return datetime(2, 1, 1, tzinfo=UTC)
    return datetime(9998, 12, 31, tzinfo=UTC) if moment.year >= 9999 else moment.astimezone(UTC)


TimeBound = Annotated[
    datetime,
    PlainValidator(_parse_bound),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def _parse_limit(value: object) -> object:
    # pydantic would also read "5.0" and "1_0".
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    raise PydanticCustomError("limit", "must be a whole number from 1 to 500")


Limit = Annotated[int, Field(ge=1, le=500), BeforeValidator(_parse_limit)]
# Opaque; whether it is one of ours is known only after decoding it.
Cursor = Annotated[str, StringConstraints(max_length=500, pattern=NO_NUL)]
# A query of a list (core.text.query_terms); what it may say is known only after reading it.
ListText = Annotated[str, StringConstraints(max_length=MOST_CHARS, pattern=NO_NUL)]
QueryText = Annotated[str, StringConstraints(max_length=255, pattern=NO_NUL)]
