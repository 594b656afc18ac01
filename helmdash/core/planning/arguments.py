"""Arguments: what an entry takes, what a model gave, and when two sets of them are the same.

A model's arguments are data of any shape; what leaves here is an object that JSON can carry and
that nests no deeper than an argument needs to.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from helmdash.core.catalog.catalog import CatalogEntry, EntryKind
from helmdash.core.planning.plan_shapes import clip
from helmdash.core.planning.plans import ArgFault, CheckArgs
from helmdash.core.text.jsontext import NotJson, read_json

ARGS_MEMBERS: Final = ("args", "arguments", "inputs", "input", "parameters", "params")
_SCHEMA_MEMBERS: Final = ("input_schema", "inputSchema", "parameters")
_JSON_TYPES: Final = frozenset(
    ("string", "number", "integer", "boolean", "array", "object", "null")
)
# Arguments nest a few levels. Deeper ones are noise, and checking and storing them recurses.
MAX_DEPTH: Final = 32
# What a person fills in at a time.
_MOST_MISSING: Final = 20
# Objects looked into for what is missing: real arguments have a few, a schema may refer to itself.
_MOST_WALKED: Final = 500
_LONGEST_PATH: Final = 120
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments a model gave, and what was wrong with their form. None: it gave none.

    Such a fault is of all of them, so it names no field.
    """

    args: Mapping[str, object] | None
    faults: tuple[ArgFault, ...] = ()


def input_schema_of(entry: CatalogEntry) -> Mapping[str, object] | None:
    """The JSON Schema of what an entry takes; None where the catalog does not say.

    A pack's `input_schema`, `inputSchema` or `parameters`; else its `inputs`, as pipelines have
    them: names with a schema each, a list of objects with a `name`, or one JSON Schema. Each
    beside the name or in the metadata.
    """
    places = (entry.raw, entry.metadata)
    for place in places:
        for member in _SCHEMA_MEMBERS:
            schema = _object_schema(place.get(member))
            if schema is not None:
                return schema
    if entry.kind is EntryKind.PIPELINE:
        places = (entry.metadata, entry.raw)
    for place in places:
        schema = _object_schema(place.get("inputs"))
        if schema is not None:
            return schema
    return None


def read_args(holder: Mapping[str, object], members: Iterable[str] = ARGS_MEMBERS) -> Given:
    """Read the arguments of a call out of the first member that holds any.

    An object written as a text is read. Anything else than an object counts as {} with a fault.
    """
    for member in members:
        value = holder.get(member)
        if value is not None:
            return as_args(value)
    return Given(None)


def as_args(value: object) -> Given:
    """Read a value as arguments: an object that JSON can carry, else {} with a fault."""
    if isinstance(value, str):
        if not value.strip():
            return Given({})
        try:
            value = read_json(value)
        except NotJson:
            return _refused("is a text; it must be an object")
    if not isinstance(value, Mapping):
        return _refused(f"is {_kind_of(value)}; it must be an object")
    if is_deeper(value, MAX_DEPTH):
        return _refused(f"nests deeper than {MAX_DEPTH} levels")
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError):
        return _refused("holds a value that JSON cannot carry")
    return Given({_no_nul(str(name)): _storable(part) for name, part in value.items()})


def check(
    entry: CatalogEntry, args: Mapping[str, object], check_args: CheckArgs, under: str = ""
) -> tuple[ArgFault, ...]:
    """Check arguments by what the entry takes; `under`: put before each field's name."""
    schema = input_schema_of(entry)
    if schema is None or not args:
        return ()
    return tuple(
        ArgFault(joined(under, fault.field), fault.message) for fault in check_args(schema, args)
    )


def joined(*path: str) -> str:
    """A dotted path of its parts, the empty ones left out."""
    return ".".join(filter(None, path))


def missing_members(
    schema: Mapping[str, object] | None, args: Mapping[str, object]
) -> tuple[str, ...]:
    """List the required members that arguments do not have: dotted paths, at most 20.

    schema None: nobody knows what is required, so none is missing. A member that is there counts as
    given, whatever it is: a template is filled in later, and `check_args` says what is wrong with a
    value. Never raises, whoever wrote the schema.
    """
    found: dict[str, None] = {}
    queue: deque[tuple[tuple[str, ...], object, object]] = deque([((), schema, args)])
    for _ in range(_MOST_WALKED):
        if not queue or len(found) >= _MOST_MISSING:
            break
        path, part, value = queue.popleft()
        if not isinstance(part, Mapping):
            continue
        if isinstance(value, Mapping):
            absent = (name for name in _required(part) if name not in value)
            found |= dict.fromkeys(clip(".".join((*path, name)), _LONGEST_PATH) for name in absent)
        queue.extend(((*path, name), inner, given) for name, inner, given in _inside(part, value))
        same = part.get("allOf")
        if isinstance(same, list):
            queue.extend((path, other, value) for other in same[:_MOST_MISSING])
        if "$ref" in part:
            queue.append((path, _referred(part["$ref"], schema), value))
    return tuple(found)[:_MOST_MISSING]


def same_form(args: Mapping[str, object]) -> str:
    """Arguments as a text that is equal where they are: 1 and 1.0 are, the order is nothing."""
    return json.dumps(_plain(args), sort_keys=True, separators=(",", ":"))


def is_deeper(value: object, most: int) -> bool:
    """Whether a value nests deeper than `most` levels. Does not recurse."""
    level: list[object] = [value]
    for _ in range(most):
        level = [
            part
            for outer in level
            for part in _parts(outer)
            if isinstance(part, Mapping | list | tuple)
        ]
        if not level:
            return False
    return True


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _storable(value: object) -> object:
    """The value with U+FFFD for NUL, which PostgreSQL stores in no text and no jsonb."""
    if isinstance(value, Mapping):
        return {_no_nul(str(name)): _storable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(part) for part in value]
    return _no_nul(value) if isinstance(value, str) else value


def _no_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _refused(message: str) -> Given:
    return Given({}, (ArgFault("", message),))


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case _:
            return "no JSON"


def _required(part: Mapping[str, object]) -> Iterator[str]:
    """The names a schema requires; `required: true` in a part counts, which authors write."""
    listed = part.get("required")
    if isinstance(listed, list):
        yield from (name for name in listed if isinstance(name, str))
    properties = part.get("properties")
    if isinstance(properties, Mapping):
        yield from (str(name) for name, inner in properties.items() if _is_required(inner))


def _inside(part: Mapping[str, object], value: object) -> Iterator[tuple[str, object, object]]:
    """The objects and lists inside a value: name, schema and value of each."""
    if isinstance(value, Mapping):
        properties = part.get("properties")
        inner = properties if isinstance(properties, Mapping) else {}
        pairs = ((name, inner.get(name), given) for name, given in value.items())
    elif isinstance(value, list):
        pairs = ((str(at), part.get("items"), given) for at, given in enumerate(value))
    else:
        return
    looked = islice(pairs, _MOST_WALKED)
    yield from (each for each in looked if isinstance(each[2], Mapping | list))


def _referred(reference: object, schema: object) -> object:
    """The part of a schema that a reference within it leads to; None: to none."""
    if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
        return None
    found = schema
    for name in _unquoted(reference).split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name.replace("~1", "/").replace("~0", "~"))
    return found


def _unquoted(reference: str) -> str:
    """With the characters that it has as %XX, which a reference needs for some."""
    quoted = reference.encode("utf-8", "surrogatepass")
    plain = _QUOTED.sub(lambda found: bytes([int(found[1], 16)]), quoted)
    return plain.decode("utf-8", "replace")


def _is_required(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("required") is True


# --- schemas -----------------------------------------------------------------------------------


def _object_schema(found: object) -> Mapping[str, object] | None:
    if isinstance(found, Mapping):
        if _is_json_schema(found):
            return found
        required = [str(name) for name, part in found.items() if _is_required(part)]
        return _closed({str(name): _input_schema(part) for name, part in found.items()}, required)
    if isinstance(found, list):
        inputs = _named_inputs(found)
        names = (str(item.get("name")) for item in found if _is_required(item))
        return _closed(inputs, [name for name in names if name in inputs])
    return None


def _is_json_schema(found: Mapping[str, object]) -> bool:
    """Tell a JSON Schema from a map of inputs, which may have one called "type" or "properties"."""
    if isinstance(found.get("type"), str | list):
        return True
    if any(isinstance(found.get(member), str) for member in ("$schema", "$ref")):
        return True
    if any(
        isinstance(found.get(member), list) for member in ("anyOf", "oneOf", "allOf", "required")
    ):
        return True
    properties = found.get("properties")
    return isinstance(properties, Mapping) and all(
        isinstance(part, Mapping | bool) for part in properties.values()
    )


def _named_inputs(found: Sequence[object]) -> dict[str, Mapping[str, object]]:
    inputs: dict[str, Mapping[str, object]] = {}
    for item in found:
        if isinstance(item, str):
            inputs[item] = {}
        elif isinstance(item, Mapping) and isinstance(item.get("name"), str):
            inner = item.get("schema")
            inputs[str(item["name"])] = _input_schema(inner if inner is not None else item)
    return inputs


def _closed(
    inputs: dict[str, Mapping[str, object]], required: list[str]
) -> Mapping[str, object] | None:
    """Inputs are listed in full, so any other name is a mistake; no list at all says nothing."""
    if not inputs:
        return None
    closed = {"type": "object", "properties": inputs, "additionalProperties": False}
    return closed | {"required": required} if required else closed


def _input_schema(part: object) -> Mapping[str, object]:
    """One input as a JSON Schema: a type that JSON does not know ("url") allows anything."""
    if isinstance(part, str):
        return {"type": part} if part in _JSON_TYPES else {}
    if not isinstance(part, Mapping):
        return {}
    left_out = {"name"}
    if isinstance(part.get("required"), bool):
        left_out.add("required")  # says that the input must be given, as no JSON Schema does
    if isinstance(part.get("type"), str) and part["type"] not in _JSON_TYPES:
        left_out.add("type")
    return {str(member): value for member, value in part.items() if member not in left_out}
