"""Members of what an upstream sent: one of the wrong type is as good as not there.

Nothing here raises. A client's request is read with `members` instead, which names what is wrong.
"""

from __future__ import annotations

from helmdash.providers.wire import Json, Object

# Windows end long before; records keep 32 bits, and a server may tell any number.
MOST_TOKENS = 2**31 - 1
# Of a number of 64 bits.
_MOST_DIGITS = 20


def text_in(holder: Object, name: str) -> str | None:
    """A member that is a string with something in it; None for anything else."""
    value = holder.get(name)
    return value if isinstance(value, str) and value else None


def list_in(holder: Object, name: str) -> list[Json]:
    """A member that is an array; empty for anything else."""
    value = holder.get(name)
    return value if isinstance(value, list) else []


def object_in(holder: Object, name: str) -> dict[str, Json] | None:
    """A member that is an object; None for anything else."""
    value = holder.get(name)
    return value if isinstance(value, dict) else None


def objects_in(holder: Object, name: str) -> list[dict[str, Json]]:
    """The objects in a member that is an array; other items are left out."""
    value = holder.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def tokens_of(value: Json) -> int | None:
    """A number of tokens from 1 up, and 12.0 is one; None for anything that cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TOKENS:
        return None
    return value


def number_of(text: str) -> int | None:
    """What a text of ASCII digits says, up to 64 bits; None for any other text: Python refuses to
    read some thousand digits."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def vector_of(value: Json) -> tuple[float, ...] | None:
    """An array of numbers; None for anything else."""
    if not isinstance(value, list) or not all(map(_is_number, value)):
        return None
    return tuple(map(float, value))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
