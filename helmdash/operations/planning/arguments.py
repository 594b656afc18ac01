"""Arguments against the JSON Schema of what they are for.

The planner leaves out what it cannot know, so nothing is missing here, at any level: what is
checked is what was given. Where the schema itself is broken, or too much work, there is nothing to
hold against the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError as SchemaMismatch

from helmdash.core.planning.arguments import is_deeper
from helmdash.core.planning.plan_shapes import clip
from helmdash.core.planning.plans import ArgFault
from helmdash.operations.json_schema import BadSchema, BoundedSchema, check_schema

# What a person mends at a time.
_MOST_FAULTS: Final = 10
# Looked at, since faults of templates are left out.
_MOST_READ: Final = 100
_KINDS: Final = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_LONGEST_MESSAGE: Final = 200
_LONGEST_FIELD: Final = 120
# The schemas of real tools have at most some 10,000 characters. One of 16,000 takes 0.1 s to check,
# and a plan may have 50 of them.
_LONGEST_SCHEMA: Final = 16_000
# Keywords and members walked through for one call: 0.1 s. A call has a few dozen.
_MOST_STEPS: Final = 20_000
# Real schemas nest some ten levels; each level takes several frames of the checker.
_MOST_DEPTH: Final = 40
# A value that an earlier step will give: "${{ steps.1.output.url }}", "{{title}}", "<from step 1>",
# "$step1.output".
_TEMPLATE: Final = re.compile(
    r"\s*(?:\$?\{\{.*\}\}|\$\{.*\}|<[^<>]*>|\$[A-Za-z_][\w.\[\]]*)\s*", re.DOTALL
)
# Longer ones are texts.
_LONGEST_TEMPLATE: Final = 500
# Members that must be there. The three after them judge by what is *not* there, so without those
# they would tell nonsense: "not" and "if" of a `required` that always holds.
_WITHOUT: Final = (
    "required",
    "dependentRequired",
    "minProperties",
    "not",
    "if",
    "unevaluatedProperties",
    "unevaluatedItems",
)
# What is given may fit several alternatives as long as some of it is missing.
_ANY_OF: Final = Draft202012Validator.VALIDATORS["anyOf"]
_OF_SEVERAL: Final = frozenset(("anyOf", "oneOf", "contains"))


def check_args(schema: Mapping[str, object], args: Mapping[str, object]) -> tuple[ArgFault, ...]:
    """Say what is wrong with arguments; () where they hold, or where the schema is of no use.

    Bounded and without a look outside, whoever wrote the schema. Never raises.
    """
    if is_deeper(schema, _MOST_DEPTH) or is_deeper(args, _MOST_DEPTH):
        return ()
    written = json.dumps(schema, ensure_ascii=False)
    # A longer one is not read, and so nothing of it is kept.
    usable = _checked(written) if len(written) <= _LONGEST_SCHEMA else None
    if usable is None:
        return ()
    try:
        bounded = BoundedSchema(usable, most_steps=_MOST_STEPS, without=_WITHOUT, oneOf=_ANY_OF)
        found = bounded.faults(args, _MOST_READ)
    except BadSchema:
        return ()
    faults = dict.fromkeys(
        fault for error in found if not _is_open(error) for fault in _faults(error)
    )
    return tuple(faults)[:_MOST_FAULTS]


@lru_cache(maxsize=256)
def _checked(written: str) -> Mapping[str, object] | None:
    """A schema that can be used; None for any other. Kept: checking one takes most of the time."""
    usable = _usable(json.loads(written))
    try:
        check_schema(usable)
    except BadSchema:
        return None
    return usable


def _usable(schema: Mapping[str, object]) -> dict[str, object]:
    """A schema without the `required: true` that authors write into a part, as JSON Schema never
    had it: one habit must not cost all checks.
    """
    return {
        str(name): _usable_part(part)
        for name, part in schema.items()
        if not (name == "required" and isinstance(part, bool))
    }


def _usable_part(part: object) -> object:
    if isinstance(part, Mapping):
        return _usable(part)
    return [_usable_part(item) for item in part] if isinstance(part, list) else part


def _is_open(error: SchemaMismatch) -> bool:
    """Whether a value is still to come: a template, or alternatives with one inside."""
    if error.validator in _OF_SEVERAL:
        return _holds_template(error.instance)
    return _is_template(error.instance)


def _holds_template(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_template, value.values()))
    if isinstance(value, list):
        return any(map(_holds_template, value))
    return _is_template(value)


def _is_template(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= _LONGEST_TEMPLATE
        and _TEMPLATE.fullmatch(value) is not None
    )


def _faults(error: SchemaMismatch) -> Iterator[ArgFault]:
    path = [str(part) for part in error.absolute_path]
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = _known(error.schema)
        told = f"is not known here; known are {', '.join(known)}" if known else "is not known here"
        extra = error.instance if isinstance(error.instance, dict) else {}
        for name in extra:
            if name not in known:
                yield _fault([*path, str(name)], told)
        return
    yield _fault(path, _message(error))


def _known(part: object) -> tuple[str, ...]:
    properties = part.get("properties") if isinstance(part, Mapping) else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) else ()


def _message(error: SchemaMismatch) -> str:
    """What is wanted, without the value: it stands in the arguments, and may be long."""
    wanted: object = error.validator_value
    match error.validator:
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            return f"must be {' or '.join(_KINDS.get(str(kind), str(kind)) for kind in kinds)}"
        case "enum" if isinstance(wanted, list):
            return f"must be one of {', '.join(map(_written, wanted))}"
        case "const":
            return f"must be {_written(wanted)}"
        case "anyOf" | "oneOf":
            return "fits none of the forms allowed here"
        case str(keyword):
            return f"does not satisfy {keyword} {_written(wanted)}"
        case _:  # a part that is `false` has no keyword
            return "is not allowed here"


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fault(path: list[str], message: str) -> ArgFault:
    return ArgFault(clip(".".join(path), _LONGEST_FIELD), clip(message, _LONGEST_MESSAGE))
