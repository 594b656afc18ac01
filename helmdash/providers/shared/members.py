"""Members of a client's JSON: one of the wrong type is a BadRequest that names it by its path.

An explicit null says as little as a member that is not there. What an upstream sent is read with
`reported` instead, which refuses nothing.
"""

from __future__ import annotations

from helmdash.core.calls.usage import LARGEST_COUNT
from helmdash.providers.errors import BadRequest, CannotTranslate
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import Json, Object


def text_at(body: Object, name: str, *, path: str = "") -> str | None:
    """A string, the empty one included; None where there is none. Raises BadRequest for anything
    else."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(path, name, "a string")


def required_text_at(body: Object, name: str, *, path: str = "") -> str:
    """A string that may be empty. Raises BadRequest for anything else, and where there is none."""
    value = body.get(name)
    if isinstance(value, str):
        return value
    raise _wrong(path, name, "a string")


def filled_text_at(body: Object, name: str, *, path: str = "", fix: str = "") -> str:
    """A string with something in it, else BadRequest. `fix` says what it is to be, where its name
    does not."""
    value = body.get(name)
    if isinstance(value, str) and value:
        return value
    raise BadRequest(_joined(path, name), fix or "This has to be a string that is not empty.")


def flag_at(body: Object, name: str, *, path: str = "") -> bool | None:
    """A boolean; None where there is none. Raises BadRequest for anything else."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(path, name, "true or false")


def number_at(body: Object, name: str, *, path: str = "") -> float | None:
    """A number; None where there is none. Raises BadRequest for anything else, booleans
    included."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, name, "a number")
    return value


def count_at(body: Object, name: str, *, path: str = "") -> int | None:
    """A whole number, and 12.0 is one; None where there is none. Raises BadRequest for anything
    else."""
    return _whole_at(body, name, path, least=-LARGEST_COUNT, most=LARGEST_COUNT)


def seed_at(body: Object, name: str, *, path: str = "") -> int | None:
    """As `count_at`, of 64 bits: nothing is reckoned with it, and clients draw all of them."""
    return _whole_at(body, name, path, least=-(2**63), most=2**64 - 1)


def _whole_at(body: Object, name: str, path: str, *, least: int, most: int) -> int | None:
    value = number_at(body, name, path=path)
    if value is None:
        return value
    if not least <= value <= most:
        raise _wrong(path, name, "a smaller whole number")
    if not float(value).is_integer():
        raise _wrong(path, name, "a whole number")
    return int(value)


def object_at(body: Object, name: str, *, path: str = "") -> dict[str, Json] | None:
    """An object; None where there is none. Raises BadRequest for anything else."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise _wrong(path, name, "an object")


def required_object_at(body: Object, name: str, *, path: str = "") -> dict[str, Json]:
    """An object, else BadRequest, also where there is none."""
    return object_item(body.get(name), _joined(path, name))


def list_at(body: Object, name: str, *, path: str = "") -> list[Json]:
    """An array; empty where there is none. Raises BadRequest for anything else."""
    value = body.get(name)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise _wrong(path, name, "an array")


def texts_at(body: Object, name: str, *, path: str = "") -> tuple[str, ...]:
    """A string or an array of strings; empty where there is none. Raises BadRequest for anything
    else."""
    value = body.get(name)
    if isinstance(value, str):
        return (value,)
    items = list_at(body, name, path=path)
    if all(isinstance(item, str) for item in items):
        return tuple(items)
    raise _wrong(path, name, "an array of strings")


def object_item(value: Json, path: str) -> dict[str, Json]:
    """The item of an array, if it is an object, else BadRequest; `path` is the item's own."""
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
    return BadRequest(_joined(path, name), f"This has to be {kind}.")


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
