"""What a JSON Schema accepts, for choosing among the values found in a reply.

The schema comes from a caller: it may not fetch anything, and it may not keep the server busy. So
references stay inside it, `pattern` is matched by an engine whose time is linear, and a schema
whose references multiply is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import ValidationError as SchemaMismatch
from jsonschema.validators import extend
from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError as BadPattern
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from helmdash.api.problems import Problem, invalid_field

# References followed for one value; a schema that describes a reply needs a few hundred.
_MAX_REFERENCES = 20_000
_MESSAGE_CHARS = 200

Accepts = Callable[[object], bool]
Checker = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[SchemaMismatch]]


class _TooManyReferences(Exception):
    """The references of the schema multiply."""


def acceptor(schema: Mapping[str, Any] | None) -> Accepts | None:
    """A function that tells whether a value satisfies the schema; None when there is none.

    Raises Problem naming `schema`: at once for a malformed one, in use for one that refers outside
    itself or without end.
    """
    if schema is None:
        return None
    _check(schema)

    def accepts(value: object) -> bool:
        try:
            return bool(_validator(schema).is_valid(value))
        except Unresolvable:
            raise _bad("a reference leads outside the schema; use `$defs`") from None
        except (RecursionError, _TooManyReferences):
            raise _bad("its references do not come to an end") from None

    return accepts


def _check(schema: Mapping[str, Any]) -> None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(part) for part in error.absolute_path)
        raise _bad(f"{place}: {error.message}" if place else error.message) from None
    except RecursionError:
        raise _bad("is nested too deeply") from None
    for part in _parts(schema):
        if "patternProperties" in part:
            raise _bad("patternProperties is not supported here")
        pattern = part.get("pattern")
        if isinstance(pattern, str):
            _matcher(pattern)


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    pending = [schema]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping):
            yield here
            pending.extend(here.values())
        elif isinstance(here, list):
            pending.extend(here)


@cache
def _keywords() -> dict[str, Checker]:
    return dict(Draft202012Validator.VALIDATORS)


def _validator(schema: Mapping[str, Any]) -> Any:
    followed = 0

    def count(keyword: str) -> Checker:
        original = _keywords()[keyword]

        def check(validator: Any, ref: Any, instance: Any, part: Mapping[str, Any]) -> Any:
            nonlocal followed
            followed += 1
            if followed > _MAX_REFERENCES:
                raise _TooManyReferences
            return original(validator, ref, instance, part)

        return check

    ours = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {"pattern": _pattern, "$ref": count("$ref"), "$dynamicRef": count("$dynamicRef")},
    )
    # A registry of our own: the default one would fetch remote references.
    registry: Registry[Any] = EMPTY_REGISTRY
    return ours(schema, registry=registry)


def _pattern(
    validator: Any, pattern: str, instance: Any, part: Mapping[str, Any]
) -> Iterator[SchemaMismatch]:
    if isinstance(instance, str):
        try:
            _matcher(pattern).validate_python(instance)
        except ValidationError:
            yield SchemaMismatch("does not match the pattern")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> TypeAdapter[str]:
    """Rust's regex engine, by way of pydantic: no look-around, no backtracking."""
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except (BadPattern, ValueError):
        raise _bad("a pattern is not supported: no look-around and no back-references") from None


def _bad(message: str) -> Problem:
    return invalid_field("schema", message[:_MESSAGE_CHARS])
