"""Typed reading of a client's JSON: a member of the wrong type is a BadRequest that names it.

An explicit null says as little as a member that is not there.
"""

from __future__ import annotations

from helmdash.providers.protocols import LARGEST_COUNT, BadRequest, CannotTranslate
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import Json, Object


def text_at(body: Object, name: str, *, path: str = "") -> str | None:
    """A string."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(path, name, "a string")


def flag_at(body: Object, name: str, *, path: str = "") -> bool | None:
    """A boolean."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(path, name, "true or false")


def number_at(body: Object, name: str, *, path: str = "") -> float | None:
    """A number."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, name, "a number")
    return value


def count_at(body: Object, name: str, *, path: str = "") -> int | None:
    """A whole number; 12.0 is one."""
    value = number_at(body, name, path=path)
    if value is None:
        return value
    if abs(value) > LARGEST_COUNT:
        raise _wrong(path, name, "a smaller whole number")
    if not float(value).is_integer():
        raise _wrong(path, name, "a whole number")
    return int(value)


def object_at(body: Object, name: str, *, path: str = "") -> dict[str, Json] | None:
    """An object."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise _wrong(path, name, "an object")


def list_at(body: Object, name: str, *, path: str = "") -> list[Json]:
    """An array; empty where there is none."""
    value = body.get(name)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise _wrong(path, name, "an array")


def texts_at(body: Object, name: str, *, path: str = "") -> tuple[str, ...]:
    """A string or an array of strings."""
    value = body.get(name)
    if isinstance(value, str):
        return (value,)
    items = list_at(body, name, path=path)
    if all(isinstance(item, str) for item in items):
        return tuple(items)
    raise _wrong(path, name, "an array of strings")


def object_in(value: Json, path: str) -> dict[str, Json]:
    """An item of an array that has to be an object."""
    if isinstance(value, dict):
        return value
    raise BadRequest(path, "This has to be an object.")


def without_nones(**members: Json) -> dict[str, Json]:
    """An object of the members that say something: None is left out."""
    return {name: value for name, value in members.items() if value is not None}


def body_of(members: Json) -> bytes:
    """A request's body as JSON bytes. Raises CannotTranslate for one that nests too deeply."""
    try:
        return to_json(members)
    except TypeError:  # orjson writes 254 levels, and reads four times as many
        raise CannotTranslate("The request nests too deeply to be written anew.") from None


def _wrong(path: str, name: str, kind: str) -> BadRequest:
    return BadRequest(f"{path}.{name}" if path else name, f"This has to be {kind}.")
