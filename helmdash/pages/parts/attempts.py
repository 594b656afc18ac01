"""The tries of a call, as rows of a table.

The gateway writes them in one form; who reports a call to the API may send objects of any form,
and nothing of those is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from helmdash.core.text.tokens import compact_json

_NUMBERS = ("number", "at_ms", "took_ms", "waited_ms")
_WORDS = ("status", "error", "message")
_LEAST_FAILURE = 400  # the first HTTP status that is no answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try; None and "" are what was not told. `others` are fields that have no column."""

    number: int | str | None
    began_after_ms: int | str | None
    took_ms: int | str | None
    waited_ms: int | str | None
    """How long it was waited afterwards, before the next one."""
    result: str
    is_failed: bool
    message: str
    others: tuple[tuple[str, str], ...]


def tries(attempts: Iterable[object]) -> list[Try]:
    """Every try of a call, in the order it was stored."""
    return [
        _try(attempt if isinstance(attempt, Mapping) else {"attempt": attempt})
        for attempt in attempts
    ]


def _try(attempt: Mapping[str, object]) -> Try:
    number, at_ms, took_ms, waited_ms = (_value(attempt.get(name)) for name in _NUMBERS)
    status, error, message = (_text(attempt.get(name)) for name in _WORDS)
    known = {*_NUMBERS, *_WORDS}
    return Try(
        number=number,
        began_after_ms=at_ms,
        took_ms=took_ms,
        waited_ms=waited_ms,
        # Both: the answer had begun, and then broke off.
        result=", then ".join(part for part in (f"HTTP {status}" if status else "", error) if part),
        is_failed=bool(error) or _is_failure(attempt.get("status")),
        message=message,
        others=tuple((name, _text(value)) for name, value in attempt.items() if name not in known),
    )


def _is_failure(status: object) -> bool:
    return isinstance(status, int) and status >= _LEAST_FAILURE


def _value(value: object) -> int | str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)
