"""Members of a client's JSON, with errors that name their path. All raise BadRequest."""

from __future__ import annotations

from typing import Any

from helmdash.providers.protocols import LARGEST_COUNT, BadRequest
from helmdash.providers.wire import Json


def object_at(value: Json, path: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise BadRequest(path, "Send an object.")
    return value


def optional_object_at(value: Json, path: str) -> dict[str, Any] | None:
    """An object, or None where the member is left out or null."""
    return None if value is None else object_at(value, path)


def string_at(value: Json, path: str, fix: str = "Send text that is not empty.") -> str:
    """Text that is not empty; `fix` is what to tell the client."""
    if not isinstance(value, str) or not value:
        raise BadRequest(path, fix)
    return value


def text_at(value: Json, path: str) -> str:
    """Text, the empty one included."""
    if not isinstance(value, str):
        raise BadRequest(path, "Send text.")
    return value


def optional_text_at(value: Json, path: str) -> str | None:
    """Text, or None where the member is left out or null."""
    return None if value is None else text_at(value, path)


def texts_at(value: Json, path: str) -> tuple[str, ...]:
    """A list of texts; left out is an empty one."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadRequest(path, "Send a list of texts.")
    return tuple(text_at(item, f"{path}.{index}") for index, item in enumerate(value))


def flag_at(value: Json, path: str) -> bool | None:
    """True, false or left out."""
    if value is not None and not isinstance(value, bool):
        raise BadRequest(path, "Send true or false.")
    return value


def number_at(value: Json, path: str) -> float | None:
    """A number, or left out."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BadRequest(path, "Send a number.")
    return value


def whole_at(value: Json, path: str) -> int | None:
    """A whole number, or left out."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise BadRequest(path, "Send a whole number.")
    if value is not None and abs(value) > LARGEST_COUNT:
        raise BadRequest(path, "Send a smaller whole number.")
    return value
