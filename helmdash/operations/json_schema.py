"""What a JSON Schema accepts: for choosing among the values of a reply, and for arguments.

The schema comes from a caller: it may not fetch anything, and it may not keep the server busy. So
references stay inside it, `pattern` is matched by an engine whose time is linear, and weighed
before (core.text.pattern_weight), a schema whose references multiply is refused, and the work for
one reply is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Annotated, Any, TypeVar

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import ValidationError as SchemaMismatch
from jsonschema.validators import extend
from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError as BadPattern
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from helmdash.core.text.pattern_weight import Weight, weigh

# References followed for one value; a schema that describes a reply needs a few hundred.
_MAX_REFERENCES = 20_000
# Keywords checked and members walked through for one reply. Each takes 3 to 10 microseconds, so
# this is two seconds at most; a plan of 100 steps takes some thousands for each value shown.
_MAX_STEPS = 250_000
# Looking up where a reference leads takes as long as this many other steps.
_STEPS_OF_A_REFERENCE = 4
# Places of a pattern that are tried at one character, a step's worth of time for so many.
_PLACES_OF_A_STEP = 500
# All patterns of a schema: 24 MB, and a fifth of a second of compiling them.
_MOST_PATTERN_UNITS = 400_000
# Of one that is kept for the next schema: those of usual schemas, 500 kB at most.
_MOST_KEPT_UNITS = 8_000
_MESSAGE_CHARS = 200

Accepts = Callable[[object], bool]
Result = TypeVar("Result")
Checker = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[SchemaMismatch]]


class BadSchema(ValueError):
    """The schema cannot be used; the message says what about it, and what to do."""


class _TooManyReferences(Exception):
    """The references of the schema multiply."""


class _TooMuchWork(Exception):
    """The schema and the values are too large for each other."""


@dataclass(slots=True)
class _Work:
    """What checking has cost: references for one value, steps for all of them."""

    most_steps: int = _MAX_STEPS
    references: int = 0
    steps: int = 0

    def step(self, *walked: object) -> None:
        """Count a keyword, and the members of what it walks through."""
        self.take(1 + sum(len(each) for each in walked if isinstance(each, list | dict)))

    def take(self, steps: int) -> None:
        """Count what takes as long as so many steps."""
        self.steps += steps
        if self.steps > self.most_steps:
            raise _TooMuchWork

    def follow(self) -> None:
        self.references += 1
        self.steps += _STEPS_OF_A_REFERENCE
        if self.references > _MAX_REFERENCES:
            raise _TooManyReferences


def acceptor(schema: Mapping[str, Any] | None) -> Accepts | None:
    """A function that tells whether a value satisfies the schema; None when there is none.

    Made for one reply: it counts its work. Raises BadSchema: at once for a malformed one, in use
    for one that refers outside itself or without end, or takes too much work.
    """
    if schema is None:
        return None
    check_schema(schema)
    return BoundedSchema(schema).accepts


class BoundedSchema:
    """A schema and the work done with it; for one reply. See `acceptor` for what is raised."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        most_steps: int = _MAX_STEPS,
        without: Iterable[str] = (),
        **other: Checker,
    ) -> None:
        """`without`: keywords that are ignored. `other`: keywords that are checked our own way.

        The schema is one that `check_schema` has let through.
        """
        # The dialect is ours whatever it says: a part that names one is checked by the library's
        # own class for it, without our bounds, and a reference can lead from a part to the whole.
        schema = {name: part for name, part in schema.items() if name != "$schema"}
        self._work = _Work(most_steps=most_steps)
        self._validator = _validator(schema, self._work, frozenset(without), other)

    def accepts(self, value: object) -> bool:
        """Raises BadSchema where looking at the value would take too much work."""
        return self._bounded(lambda: bool(self._validator.is_valid(value)))

    def faults(self, value: object, most: int) -> list[SchemaMismatch]:
        """What is wrong with a value, at most `most` faults, in the order of the schema's keywords.
        Raises as `accepts`."""
        return self._bounded(lambda: list(islice(self._validator.iter_errors(value), most)))

    def _bounded(self, check: Callable[[], Result]) -> Result:
        self._work.references = 0
        try:
            return check()
        except Unresolvable:
            raise _bad("a reference leads outside the schema; use `$defs`") from None
        except (RecursionError, _TooManyReferences):
            raise _bad("its references do not come to an end") from None
        except _TooMuchWork:
            raise _bad("takes too long to check on this text; simplify it or send less") from None


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise BadSchema for a malformed schema, and for what no bound would hold."""
    schema = {name: part for name, part in schema.items() if name != "$schema"}
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
        if isinstance(part.get("$schema"), str):
            raise _bad("only the outermost schema may have a `$schema`")
        if "$ref" in part and "$dynamicRef" in part:
            # `unevaluatedProperties` follows both where nothing counts: two to the power of depth.
            raise _bad("a part may have `$ref` or `$dynamicRef`, not both")
    _check_patterns(part["pattern"] for part in _parts(schema) if "pattern" in part)


def _check_patterns(found: Iterable[object]) -> None:
    units = 0
    for pattern in dict.fromkeys(each for each in found if isinstance(each, str)):
        units += len(pattern)
        weight = _weight(pattern) if units <= _MOST_PATTERN_UNITS else Weight()
        units += weight.units
        if units > _MOST_PATTERN_UNITS:
            raise _bad("its patterns are too large: let them repeat less, and use fewer classes")
        _matcher(pattern, weight)


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


def _validator(
    schema: Mapping[str, Any],
    work: _Work,
    without: frozenset[str],
    other: Mapping[str, Checker],
) -> Any:
    """Build the validator of one reply. Takes a millisecond or two: once, not for each value."""
    checkers = {name: _counted(checker, work) for name, checker in _keywords().items()}
    checkers["uniqueItems"] = _unique(work)
    checkers["enum"] = _one_of(work)
    checkers["pattern"] = _fitting(work)
    checkers |= {name: _counted(checker, work) for name, checker in other.items()}
    checkers |= dict.fromkeys(without, _ignored)
    for name in ("$ref", "$dynamicRef"):
        checkers[name] = _followed(checkers[name], work)
    ours = extend(Draft202012Validator, checkers)  # type: ignore[no-untyped-call]
    # A registry of our own: the default one would fetch remote references.
    registry: Registry[Any] = EMPTY_REGISTRY
    return ours(schema, registry=registry)


def _ignored(validator: Any, keyword: Any, instance: Any, part: Mapping[str, Any]) -> Any:
    return ()


def _counted(original: Checker, work: _Work) -> Checker:
    def check(validator: Any, keyword: Any, instance: Any, part: Mapping[str, Any]) -> Any:
        work.step(keyword, instance)
        return original(validator, keyword, instance, part)

    return check


def _followed(original: Checker, work: _Work) -> Checker:
    def check(validator: Any, ref: Any, instance: Any, part: Mapping[str, Any]) -> Any:
        work.follow()
        return original(validator, ref, instance, part)

    return check


def _unique(work: _Work) -> Checker:
    """`uniqueItems` in time in proportion to the list; the library compares each with each."""

    def check(
        validator: Any, wanted: Any, instance: Any, part: Mapping[str, Any]
    ) -> Iterator[SchemaMismatch]:
        if wanted is True and isinstance(instance, list):
            work.step()
            if len({_key(item, work) for item in instance}) < len(instance):
                yield SchemaMismatch("has an item twice")

    return check


def _one_of(work: _Work) -> Checker:
    """`enum` by look-up: a schema may list every id of a catalog, for each step of a plan."""
    sets: dict[int, set[Hashable]] = {}  # by identity: the schema stays where it is

    def check(
        validator: Any, choices: Any, instance: Any, part: Mapping[str, Any]
    ) -> Iterator[SchemaMismatch]:
        if id(choices) not in sets:
            sets[id(choices)] = {_key(choice, work) for choice in choices}
        if _key(instance, work) not in sets[id(choices)]:
            yield SchemaMismatch("is none of the choices")

    return check


def _key(value: Any, work: _Work) -> Hashable:
    """Something that is equal where two JSON values are: 1 and 1.0 are, 1 and true are not."""
    work.step()
    if isinstance(value, dict):
        return frozenset((name, _key(member, work)) for name, member in value.items())
    if isinstance(value, list):
        return tuple(_key(item, work) for item in value)
    key: Hashable = (bool, value) if isinstance(value, bool) else value
    return key


def _fitting(work: _Work) -> Checker:
    """`pattern`, with what it costs. Those of a schema are compiled once for a reply."""
    known: dict[str, tuple[TypeAdapter[str], int]] = {}

    def check(
        validator: Any, pattern: str, instance: Any, part: Mapping[str, Any]
    ) -> Iterator[SchemaMismatch]:
        work.step()
        if not isinstance(instance, str):
            return
        if pattern not in known:
            weight = _weight(pattern)
            known[pattern] = _matcher(pattern, weight), weight.places
        matcher, places = known[pattern]
        work.take(places * len(instance) // _PLACES_OF_A_STEP)
        try:
            matcher.validate_python(instance)
        except ValidationError:
            yield SchemaMismatch("does not match the pattern")

    return check


def _weight(pattern: str) -> Weight:
    weight = weigh(pattern)
    if weight is None:
        raise _bad("a pattern is not supported: no (?x)")
    return weight


def _matcher(pattern: str, weight: Weight) -> TypeAdapter[str]:
    """Rust's regex engine, by way of pydantic: no look-around, no backtracking."""
    is_small = weight.units + len(pattern) <= _MOST_KEPT_UNITS
    return (_compiled_once if is_small else _compiled)(pattern)


def _compiled(pattern: str) -> TypeAdapter[str]:
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except (BadPattern, ValueError):
        raise _bad("a pattern is not supported: no look-around and no back-references") from None


_compiled_once = lru_cache(maxsize=128)(_compiled)


def _bad(message: str) -> BadSchema:
    return BadSchema(message[:_MESSAGE_CHARS])
