"""The kinds of members that bodies are made of, with their limits.

What is checked here natively by pydantic is also what the OpenAPI says, so the two cannot differ.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from django.utils import timezone
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from helmdash.core.budgets.trials import TRIAL_PATTERN
from helmdash.core.calls.capture import CLOCK_AHEAD, CONVERSATION_CHARS, CONVERSATION_PATTERN

# To the letter ("1" is no number, true is no count), and unknown members are refused: a misspelt
# one that is dropped in silence is data lost.
STRICT = ConfigDict(extra="forbid", strict=True)
# Objects that may hold more than we read.
OPEN = ConfigDict(extra="ignore", strict=True)

# Beyond this, JavaScript and every double round; no count of tokens or bytes comes near.
LARGEST = 2**53
# PositiveIntegerField's range on every database.
LARGEST_SMALL = 2**31 - 1

# No control characters: they hide in logs and pages. Rust, Python and JavaScript read it alike.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
_NON_BLANK_LINE = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
_ID = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$"
# Of queries.
NO_NUL = r"^[^\x00]*$"

# A sentence for each pattern, where the pattern itself would be no help.
PATTERN_SENTENCES = {
    _LINE: "must be one line without control characters",
    _NON_BLANK_LINE: "must be one line of text, not blank, without control characters",
    _ID: "must be printable, without white space at its ends",
    NO_NUL: "must not contain the character U+0000",
    CONVERSATION_PATTERN: (
        "must be 1 to 255 of the characters A-Z a-z 0-9 . _ : @ + = -, and not . or .. alone"
    ),
    r"^[A-Za-z0-9._-]{1,120}$": "must be 1 to 120 of the characters A-Z a-z 0-9 . _ -",
}


# Short texts of one line, trimmed; blank says "not told".
Word32 = Annotated[str, StringConstraints(max_length=32, strip_whitespace=True, pattern=_LINE)]
Word64 = Annotated[str, StringConstraints(max_length=64, strip_whitespace=True, pattern=_LINE)]
Word128 = Annotated[str, StringConstraints(max_length=128, strip_whitespace=True, pattern=_LINE)]
Word255 = Annotated[str, StringConstraints(max_length=255, strip_whitespace=True, pattern=_LINE)]
ClientId = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=_ID)]
# Longer than any id that agents use, short enough for an index.
ConversationId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=CONVERSATION_CHARS, pattern=CONVERSATION_PATTERN),
]
# Of what is asked before a call is made: the budget may be on trial for some conversations.
TriedConversation = Annotated[
    ConversationId | None,
    Field(description="The dialogue it is for: where a budget is tried, the one that rules it."),
]
ReminderId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=_ID)]
CatalogName = Annotated[
    str, StringConstraints(min_length=1, max_length=120, pattern=r"^[A-Za-z0-9._-]{1,120}$")
]
ModelId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, strip_whitespace=True, pattern=_NON_BLANK_LINE),
]
Intent = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
PATTERN_SENTENCES[TRIAL_PATTERN] = "must be the number of a trial, such as 12 or 12:suggested"
PATTERN_SENTENCES[r"\S"] = "must not be blank"


def whole(value: object) -> object:
    """JSON has one kind of number: 3.0 is a whole one, as JSON Schema says."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value


Count = Annotated[int, Field(ge=0, le=LARGEST), BeforeValidator(whole)]
Positive = Annotated[int, Field(ge=1, le=LARGEST), BeforeValidator(whole)]
SmallPositive = Annotated[int, Field(ge=1, le=LARGEST_SMALL), BeforeValidator(whole)]
HttpStatus = Annotated[int, Field(ge=100, le=599), BeforeValidator(whole)]
# Clients measure in fractions; we keep whole milliseconds. The limit is 30 years.
Milliseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EARLIEST, _LATEST = 2000, 2100  # a clock outside these years is broken
_MOMENT_SENTENCE = "must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z"


def parse_moment(value: object) -> datetime:
    """An RFC 3339 time with its offset. Raises PydanticCustomError with a sentence."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise PydanticCustomError("moment", _MOMENT_SENTENCE)
    try:
        return datetime.fromisoformat(value.upper())
    except ValueError:
        raise PydanticCustomError("moment", _MOMENT_SENTENCE) from None


def _parse_started_at(value: object) -> datetime:
    moment = parse_moment(value)
    if not _EARLIEST <= moment.year <= _LATEST:
        raise PydanticCustomError(
            "moment", f"must lie in the years {_EARLIEST} to {_LATEST}; is the clock right?"
        )
    if moment > timezone.now() + CLOCK_AHEAD:
        raise PydanticCustomError("moment", "lies in the future; is the clock right?")
    return moment.astimezone(UTC)


StartedAt = Annotated[
    datetime,
    PlainValidator(_parse_started_at),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": "^20[0-9]{2}-"}),
]
FreeObject = dict[str, Any]

_CATALOG_NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")


def is_catalog_name(name: str) -> bool:
    """Whether a catalog may be called this."""
    return _CATALOG_NAME.fullmatch(name) is not None
