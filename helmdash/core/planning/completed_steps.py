"""Completed steps: what a caller's context says has been done, and not doing it again.

Source: helmdeck ADR 053 (single_pick: the agent calls again with what it has done).
The context is the caller's own; nothing names its members, so the usual words are understood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Final

from helmdash.core.planning.arguments import ARGS_MEMBERS, Given, as_args, read_args
from helmdash.core.planning.plan_calls import Miss, PlannedCall, resolve
from helmdash.core.planning.plan_shapes import TOOL_MEMBERS, text_in, text_of
from helmdash.core.planning.plans import CompletedStep, UnusablePlan
from helmdash.core.planning.tool_names import ToolNames

# Members that say what was done: a name alone counts there.
_DONE_MEMBERS: Final = (
    "steps_taken",
    "taken_steps",
    "taken",
    "steps_done",
    "done_steps",
    "done",
    "completed_steps",
    "steps_completed",
    "completed",
    "executed_steps",
    "executed",
    "previous_steps",
    "prior_steps",
)
# Members that say what was done last. One step says that there was one, not how often: a name alone
# then tells no step of the same entry apart, so it counts as often as makes it a repeat.
_LAST_MEMBERS: Final = (
    "previous_step",
    "prior_step",
    "last_step",
    "completed_step",
    "done_step",
    "previous_tool",
    "last_tool",
)
# Members that may hold other things too, such as messages: only objects that name a tool count.
_LOOSE_MEMBERS: Final = ("history", "progress", "tool_calls", "calls")
_FAILED: Final = frozenset(("failed", "failure", "error", "errored", "cancelled", "canceled"))
# A chain of the catalog's pipelines has at most five steps, and an intent rarely asks for more than
# three things; an agent that is further goes in a circle.
MOST_COMPLETED: Final = 12
# How often an entry may have been taken before a step that nothing tells apart is a repeat.
_MOST_ALIKE: Final = 2
# The newest listed; far more than a chain may have.
_MOST_LISTED: Final = 200


def completed_steps(context: Mapping[str, object] | None) -> tuple[CompletedStep, ...]:
    """The steps that a context lists as done, oldest first; steps that failed are not done.

    None, no context: none. Never raises: what cannot be read as a step is not one.
    """
    if not context:
        return ()
    found = [step for holder in _holders(context) for step in _listed(holder)]
    return tuple(found[-_MOST_LISTED:])


def refuse_loop(
    call: PlannedCall | None, completed: Sequence[CompletedStep], names: ToolNames
) -> None:
    """Refuse a step that was taken already, and any step (None: a gap) of a chain without end.

    The same entry with other arguments is fine. Arguments nobody knows (the context lists none, or
    the model picked none) tell nothing apart: reading a second file then looks like reading the
    first one again. So those count as a repeat only where the entry was taken twice already. Raises
    UnusablePlan.
    """
    if len(completed) >= MOST_COMPLETED:
        raise UnusablePlan(
            "plan.too_many_steps",
            f"{len(completed)} steps were taken already, and a chain may have {MOST_COMPLETED}.",
        )
    if call is None:
        return
    alike = 0
    for step in completed:
        earlier = resolve(step.tool, _given(step), names)
        if isinstance(earlier, Miss) or earlier.entry.id != call.entry.id:
            continue
        if step.args is not None and earlier.key == call.key:
            raise _repeats(call, "with the same arguments")
        alike += step.args is None or not call.given
    if alike >= _MOST_ALIKE:
        raise _repeats(call, "and nothing tells the calls apart; list their args under steps_done")


def _given(step: CompletedStep) -> Given:
    return Given(None) if step.args is None else as_args(step.args)


def _repeats(call: PlannedCall, how: str) -> UnusablePlan:
    return UnusablePlan(
        "plan.repeats_itself", f"The next step, {call.entry.id}, was taken already {how}."
    )


def _holders(context: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The context, and what it says about progress, one level down."""
    yield context
    for member in ("progress", "state"):
        inner = context.get(member)
        if isinstance(inner, Mapping):
            yield inner


def _listed(holder: Mapping[str, object]) -> Iterator[CompletedStep]:
    for member in _LAST_MEMBERS:
        last = _step(holder.get(member), names_count=True)
        if last is not None:
            yield from repeat(last, 1 if last.args is not None else _MOST_ALIKE)
    for member in (*_DONE_MEMBERS, *_LOOSE_MEMBERS):
        value = holder.get(member)
        if not isinstance(value, list):
            continue
        for item in islice(value, max(0, len(value) - _MOST_LISTED), None):
            step = _step(item, names_count=member in _DONE_MEMBERS)
            if step is not None:
                yield step


def _step(item: object, *, names_count: bool) -> CompletedStep | None:
    if isinstance(item, str):
        name = item.strip()
        is_name = names_count and name and not any(letter.isspace() for letter in name)
        return CompletedStep(tool=name) if is_name else None
    if not isinstance(item, Mapping) or _has_failed(item):
        return None
    inner = item.get("function")
    if isinstance(inner, Mapping):  # as tool calls are written: {"function": {"name", "arguments"}}
        item = inner
    tool = text_in(item, TOOL_MEMBERS)
    if not tool or (not names_count and not _is_call(item)):
        return None
    return CompletedStep(tool=tool, args=read_args(item).args)


def _is_call(item: Mapping[str, object]) -> bool:
    """Whether an object of a mixed list is a call: a message may have a `name` too."""
    return any(member in item for member in ("tool", "tool_name", *ARGS_MEMBERS))


def _has_failed(item: Mapping[str, object]) -> bool:
    if (
        text_of(item.get("status")).lower() in _FAILED
        or text_of(item.get("outcome")).lower() in _FAILED
    ):
        return True
    return any(item.get(member) is False for member in ("ok", "success")) or bool(item.get("error"))
