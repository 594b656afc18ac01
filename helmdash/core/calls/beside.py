"""What a reply says beside its text, where an answer may stand that was due in the text.

Some models answer a request for JSON by calling tools, the entries of the catalog or one that takes
the answer; others leave their answer among their thoughts and say nothing. Each place gives a
candidate that is read like any text; none of them is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from helmdash.core.calls.finish import FinishReason
from helmdash.core.text.jsontext import NotJson, read_json
from helmdash.core.text.reasoning import strip_reasoning, without_marks

# Of more than this, nothing is an answer.
_MOST_CALLS = 100


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that a reply calls; `arguments` is JSON text as the model wrote it, "" for none."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The calls of tools and the thoughts of a reply."""

    calls: tuple[ToolUse, ...] = ()
    reasoning: str = ""


class AnswerPlace(StrEnum):
    """Where an answer stood."""

    CALLS = "tool_calls"  # the calls are its steps
    ARGUMENTS = "tool_arguments"  # it is what a tool was called with
    REASONING = "reasoning"


def texts_in(beside: Beside, said: str = "") -> Iterator[tuple[AnswerPlace, str]]:
    """The texts that may hold an answer as JSON, likeliest first.

    said: the reply's own text, which may be nothing but thoughts. Thoughts come as a block that
    never closes, so that they are read as such: from their end, and only where the reply was not
    cut off. Marks of their own go first, since one of them would close it.
    """
    for call in beside.calls[:_MOST_CALLS]:
        if call.arguments.strip():
            yield AnswerPlace.ARGUMENTS, call.arguments
    if beside.reasoning.strip():
        yield AnswerPlace.REASONING, f"<think>{without_marks(beside.reasoning)}"
    if said.strip() and not strip_reasoning(said).text:
        yield AnswerPlace.REASONING, f"<think>{without_marks(said)}"


def whole_calls(beside: Beside, finish_reason: FinishReason | None) -> tuple[ToolUse, ...]:
    """The calls that were written to their end; of a cut-off reply the last may not be.

    finish_reason None: the provider gave none, so all count as whole.
    """
    calls = beside.calls[:_MOST_CALLS]
    if finish_reason is FinishReason.LENGTH and calls and not _is_json(calls[-1].arguments):
        return calls[:-1]
    return calls


def plan_of_calls(calls: Sequence[ToolUse]) -> dict[str, object]:
    """A plan as a model would have written it, whose steps are these calls."""
    return {"steps": [{"tool": call.name, "args": _value(call.arguments)} for call in calls]}


def route_of_calls(calls: Sequence[ToolUse]) -> dict[str, object]:
    """A route that recommends the first of these calls; the others are alternatives."""
    first, *others = calls
    return {
        "recommendation": {"id": first.name, "suggested_inputs": _value(first.arguments)},
        "alternatives": [{"id": call.name} for call in others],
    }


def as_text(value: object) -> str:
    """A value as the text that would have been due."""
    return json.dumps(value, ensure_ascii=False)


def _value(arguments: str) -> object:
    """Arguments as JSON where they are; the text itself else, whose fault is told later."""
    if not arguments.strip():
        return {}
    try:
        return read_json(arguments)
    except NotJson:
        return arguments


def _is_json(arguments: str) -> bool:
    try:
        read_json(arguments or "{}")
    except NotJson:
        return False
    return True
