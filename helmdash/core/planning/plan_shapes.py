"""What looks like a plan: which JSON object of a reply is the answer, and the parts of it.

A reply may hold examples, thoughts and wrappers besides; `decode` shows each object of it. A shape
that is too loose takes the wrong one, one that is too strict finds none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

TOOL_MEMBERS: Final = ("tool", "tool_name", "pack", "pipeline", "function", "name")
RATIONALE_MEMBERS: Final = ("rationale", "why", "reason", "reasoning", "description")
# What only a call has. A `name` is anybody's, and counts beside arguments only: a tool that is
# described has `parameters`, and a step of a pipeline in the catalog has `pack` and `input`.
_TELLING_MEMBERS: Final = ("tool", "tool_name")
_NAMING_MEMBERS: Final = ("name", "function")
_TELLING_ARGS: Final = ("args", "arguments")
# What a catalog's pipeline has beside its steps: models repeat entries they were shown.
_CATALOG_MEMBERS: Final = frozenset(
    ("accepts", "produces", "supersedes", "outputs", "intent_keywords", "metadata", "builtin")
)
_WRAPPERS: Final = ("plan", "answer", "result", "response", "output", "data", "next_step", "step")
# How deep an answer may be wrapped; two is the most that was seen.
_MOST_WRAPPERS: Final = 3
_PLAN_MEMBERS: Final = frozenset(
    ("steps", "done", "complexity", "reasoning", "more_steps_likely", "rewritten_prompt")
)


@dataclass(frozen=True, slots=True)
class WrittenSteps:
    """An answer's list of steps, as written, and the members beside it."""

    items: Sequence[object]
    members: Mapping[str, object]


def is_plan_shaped(value: object) -> bool:
    """Whether a value is a plan: an object with steps, a list of steps, or a wrapper of either.

    The steps may be of any kind, and none at all: `read_plan` says what is wrong with them. A lone
    step is none (see is_step_shaped), nor is an object that merely has other members.
    """
    found = find_answer(value)
    return found is not None and not is_step_shaped(value)


def is_full_plan(value: object) -> bool:
    """Whether a value is a plan that says something: it has a step, or nothing is left to do."""
    found = find_answer(value)
    if found is None or is_step_shaped(value):
        return False
    return to_bool(found.members.get("done")) is True or any(map(_could_be_step, found.items))


def is_step_shaped(value: object) -> bool:
    """Whether a value is a lone step, as models answer that were asked for the next one only.

    Looser than a plan, since an example in the prose looks the same: for replies without a plan.
    """
    if isinstance(value, Mapping) and "steps" not in value:
        if _is_call(value):
            return True
        return any(_is_call(value.get(member)) for member in ("next_step", "step"))
    return False


def find_answer(value: object) -> WrittenSteps | None:
    """Find the steps of an answer, wrapped or not; None where there are none."""
    outer: dict[str, object] = {}
    for _ in range(_MOST_WRAPPERS + 1):
        if isinstance(value, list):
            return WrittenSteps(value, outer) if any(map(_is_call, value)) else None
        if not isinstance(value, Mapping):
            return None
        items = _items(value)
        if items is not None:
            return WrittenSteps(items, outer | dict(value))
        inner = next((value[name] for name in _WRAPPERS if _is_container(value.get(name))), None)
        if inner is None:
            return None
        outer |= value
        value = inner
    return None


def to_bool(value: object) -> bool | None:
    """Read a boolean as models write them; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return None


def clip(text: str, longest: int) -> str:
    """A text of at most `longest` characters; the cut shows."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def text_of(value: object) -> str:
    """A value as a trimmed text, "" when it is none; without NUL, which PostgreSQL stores not."""
    return value.replace("\0", "\ufffd").strip() if isinstance(value, str) else ""


def text_in(holder: Mapping[str, object], members: Sequence[str]) -> str:
    """The first text that one of the members has, trimmed; "" without any."""
    return next((text for name in members if (text := text_of(holder.get(name)))), "")


def _items(value: Mapping[str, object]) -> Sequence[object] | None:
    if "steps" not in value:
        if _is_call(value):
            return [value]
        # "Nothing is left to do" may come without a list.
        return [] if to_bool(value.get("done")) and _PLAN_MEMBERS.issuperset(value) else None
    if not _CATALOG_MEMBERS.isdisjoint(value):
        return None
    steps = value["steps"]
    if isinstance(steps, list):
        return steps
    if isinstance(steps, Mapping):
        numbered = list(steps.values())  # {"1": {...}, "2": {...}}
        if numbered and all(map(_is_call, numbered)):
            return numbered
        return [steps] if text_in(steps, TOOL_MEMBERS) else None
    return [] if steps is None and len(_PLAN_MEMBERS.intersection(value)) > 1 else None


def _could_be_step(item: object) -> bool:
    return isinstance(item, Mapping) or bool(text_of(item))


def _is_call(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if any(isinstance(value.get(member), str) for member in _TELLING_MEMBERS):
        return True
    if isinstance(value.get("function"), Mapping):
        return "name" in value["function"]
    is_named = any(isinstance(value.get(member), str) for member in _NAMING_MEMBERS)
    return is_named and any(member in value for member in _TELLING_ARGS)


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | list)
