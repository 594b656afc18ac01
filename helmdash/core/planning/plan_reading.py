"""Reading a plan: from any JSON value a model answered to checked steps, or to a typed refusal.

Nothing of an answer is lost in silence: what cannot be used becomes a gap step, or is dropped with
a note and `partial`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.catalog import Catalog
from helmdash.core.decoding.answer_search import decode_best
from helmdash.core.decoding.decoding import Decoded
from helmdash.core.planning.arguments import Given, read_args
from helmdash.core.planning.completed_steps import refuse_loop
from helmdash.core.planning.plan_calls import (
    Miss,
    PlannedCall,
    Suggest,
    nearest,
    resolve,
    with_run_id,
)
from helmdash.core.planning.plan_shapes import (
    RATIONALE_MEMBERS,
    TOOL_MEMBERS,
    WrittenSteps,
    clip,
    find_answer,
    is_full_plan,
    is_plan_shaped,
    is_step_shaped,
    text_in,
    text_of,
    to_bool,
)
from helmdash.core.planning.plans import (
    MODEL_SAID,
    MOST_STEPS,
    UNKNOWN_TOOL,
    CheckArgs,
    CompletedStep,
    Complexity,
    Gap,
    Plan,
    PlannedStep,
    UnusablePlan,
)
from helmdash.core.planning.tool_names import ToolNames, client_name

__all__ = ["decode_plan", "is_plan_shaped", "is_step_shaped", "read_plan"]

# A rationale is one sentence, a reasoning three; longer ones are thoughts that leaked.
_LONGEST_RATIONALE: Final = 1_000
_LONGEST_REASONING: Final = 4_000
# Of a longer name nothing is kept: it is no name.
_LONGEST_ASKED: Final = 200
# Comparing the spelling of an unknown name with 5,000 ids takes about 30 ms.
_MOST_SPELLINGS: Final = 10
_MOST_NOTES: Final = 20
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")
_LAST_LINE: Final = "Take the steps in this order. When a tool reports an error, stop and show it."
_NEXT_LINE: Final = "Take this step, then ask for the next one and list the steps taken."


def decode_plan(raw: str, *, finish_reason: FinishReason | None = None) -> Decoded:
    """Find the plan in a model's reply; an empty one only where there is none with a step, a lone
    step only where there is no plan.

    finish_reason None: the provider gave none. Raises Undecodable where no JSON of the reply is a
    plan or a step.
    """
    shapes = (is_full_plan, is_plan_shaped, is_step_shaped)
    return decode_best(raw, shapes, finish_reason=finish_reason, label="plan")


def read_plan(
    value: object,
    *,
    catalog: Catalog,
    variant: PromptVariant,
    intent: str,
    check_args: CheckArgs,
    suggest: Suggest,
    completed: Sequence[CompletedStep] = (),
    partial: bool = False,
) -> Plan:
    """Turn a decoded answer into a plan against the catalog that stands behind it.

    catalog: the whole one, as it was before it was fitted. suggest: ids of entries like a text,
    nearest first. completed: the steps before this one. partial: the reply was cut off. Raises
    UnusablePlan for an answer that leaves nothing to do, or (single_pick) goes in a circle; nothing
    else, whatever the value.
    """
    answer = find_answer(value)
    if answer is None:
        raise UnusablePlan("plan.no_steps", "The answer is no plan: it has no list of steps.")
    reading = _Reading(ToolNames(catalog), intent, check_args, suggest, is_partial=partial)
    if partial:
        reading.note("The reply was cut off; the steps that were written to their end are kept.")
    if not answer.items:
        return _without_steps(answer, variant, completed, reading)
    is_single = variant is PromptVariant.SINGLE_PICK
    found = reading.steps(answer.items, 1 if is_single else MOST_STEPS)
    if not found:
        raise UnusablePlan("plan.no_steps", "None of the steps in the answer can be read.")
    more = None
    if is_single:
        refuse_loop(found[0].call, completed, reading.names)
        more = _more_steps(answer, found[0].step, reading, is_cut=partial)
    steps = tuple(each.step for each in found)
    return Plan(
        steps=steps,
        rewritten_prompt=rewrite_prompt(intent, steps, more_steps_likely=more is True),
        complexity=complexity_of(steps, more_steps_likely=more is True),
        reasoning=_reasoning(answer),
        more_steps_likely=more,
        partial=reading.is_partial,
        notes=reading.told(),
    )


def complexity_of(steps: Sequence[PlannedStep], *, more_steps_likely: bool = False) -> Complexity:
    """What kind of work the steps are. The first step of a chain is a chain."""
    if len(steps) > 1 or more_steps_likely:
        return Complexity.PACK_CHAIN
    if steps and steps[0].is_pipeline:
        return Complexity.PIPELINE_DIRECT
    return Complexity.SINGLE_ACTION


def rewrite_prompt(
    intent: str, steps: Sequence[PlannedStep], *, more_steps_likely: bool = False
) -> str:
    """The plan as an instruction to an agent, made from the steps; "" without any."""
    if not steps:
        return ""
    lines = [f"Plan for: {intent.strip()}", *map(_line, steps)]
    lines.append(_NEXT_LINE if more_steps_likely else _LAST_LINE)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Found:
    """A step as it was read; `call` is None for a gap."""

    step: PlannedStep
    call: PlannedCall | None


@dataclass(slots=True)
class _Reading:
    """One answer being read: what is looked up, and what has to be told."""

    names: ToolNames
    intent: str
    check_args: CheckArgs
    suggest: Suggest
    is_partial: bool
    left_out: int = 0
    notes: list[str] = field(default_factory=list)
    near: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def note(self, sentence: str) -> None:
        if sentence and sentence not in self.notes:
            self.notes.append(sentence)

    def told(self) -> tuple[str, ...]:
        over = len(self.notes) - _MOST_NOTES
        if over <= 0:
            return tuple(self.notes)
        return (*self.notes[: _MOST_NOTES - 1], f"{over + 1} more things were put right.")

    def steps(self, items: Sequence[object], most: int) -> list[_Found]:
        """Read steps in the order given, numbered from 1, up to `most` of them."""
        found: list[_Found] = []
        dropped = 0
        for place, item in enumerate(items, start=1):
            if len(found) == most:
                self._leave_out(len(items) - place + 1, most)
                break
            read = self._step(item, place, len(found) + 1)
            if read is not None:
                found.append(read)
            else:
                dropped += 1
        if dropped:
            self.is_partial = True
            self.note(f"{_count(dropped)} no object and left out.")
        return found

    def _leave_out(self, count: int, most: int) -> None:
        self.left_out = count
        if most == 1:
            self.note(f"Only the first step was asked for; {_count(count)} left out after it.")
            return
        self.is_partial = True
        self.note(f"A plan has at most {most} steps; {_count(count)} left out.")

    def _step(self, item: object, place: int, order: int) -> _Found | None:
        if isinstance(item, str) and item.strip():
            self.note(f"Step {place} was a text instead of an object.")
            item = {"tool": item}
        if not isinstance(item, Mapping):
            return None
        asked, given, rationale = _read_call(item)
        call = resolve(asked, given, self.names)
        if isinstance(call, Miss):
            return _Found(self._gap(call, given, rationale, order), None)
        self.note(call.note)
        step = PlannedStep(
            order=order,
            tool=call.tool,
            args=call.args,
            rationale=rationale,
            entry=call.entry.id,
            client_tool=client_name(call.tool),
            is_pipeline=call.is_pipeline,
            arg_faults=call.checked(self.check_args),
            missing_args=call.missing(),
        )
        return _Found(step, call)

    def _gap(self, miss: Miss, given: Given, rationale: str, order: int) -> PlannedStep:
        told = f"gap: {miss.reason}"
        return PlannedStep(
            order=order,
            tool=UNKNOWN_TOOL,
            args=given.args or {},
            rationale=f"{told}{MODEL_SAID}{rationale}" if rationale else told,
            entry=None,
            gap=Gap(
                reason=miss.reason,
                asked=_gist(rationale)
                if miss.is_none
                else clip(miss.asked.strip(), _LONGEST_ASKED),
                suggestions=self._suggestions(miss, rationale),
            ),
            arg_faults=given.faults,
            missing_args=miss.missing,
        )

    def _suggestions(self, miss: Miss, rationale: str) -> tuple[str, ...]:
        words = miss.asked[:_LONGEST_ASKED] if miss.tells_wish else ""
        text = f"{words} {rationale}".strip() or self.intent
        if text not in self.near:
            # Past the bound only the words count, which cost next to nothing.
            asked = miss.asked if len(self.near) < _MOST_SPELLINGS else ""
            self.near[text] = nearest(
                asked, text, names=self.names, suggest=self.suggest, first=miss.rivals
            )
        return self.near[text]


def _without_steps(
    answer: WrittenSteps,
    variant: PromptVariant,
    completed: Sequence[CompletedStep],
    reading: _Reading,
) -> Plan:
    says_done = to_bool(answer.members.get("done")) is True
    says_last = to_bool(answer.members.get("more_steps_likely")) is False
    if reading.is_partial and not says_done:
        raise UnusablePlan("plan.cut_off", "The reply ended before its first step was complete.")
    if not completed or not (says_done or says_last):
        raise UnusablePlan("plan.no_steps", "The plan has no steps.")
    return Plan(
        steps=(),
        rewritten_prompt="",
        complexity=Complexity.SINGLE_ACTION,
        reasoning=_reasoning(answer),
        partial=reading.is_partial,
        more_steps_likely=False if variant is PromptVariant.SINGLE_PICK else None,
        is_done=True,
        notes=reading.told(),
    )


def _more_steps(
    answer: WrittenSteps, step: PlannedStep, reading: _Reading, *, is_cut: bool
) -> bool:
    """Whether steps follow the one that was picked: as the model says, else as it behaves.

    Where it was cut off before it could say, they may: to ask once too often costs a call, not to
    ask costs the rest of the work.
    """
    if reading.left_out:
        return True
    told = to_bool(answer.members.get("more_steps_likely"))
    if told is not None:
        return told
    complexity = str(answer.members.get("complexity")).strip().lower()
    if step.is_pipeline:
        return False
    if complexity in (Complexity.PACK_CHAIN, Complexity.SINGLE_ACTION):
        return complexity == Complexity.PACK_CHAIN
    reading.note("The model did not say whether more steps follow.")
    return is_cut


def _read_call(item: Mapping[str, object]) -> tuple[str, Given, str]:
    """The tool, the arguments and the rationale of a step, under whichever names it has them."""
    rationale = text_in(item, RATIONALE_MEMBERS)
    inner = item.get("function")
    if isinstance(inner, Mapping):  # as tool calls are written: {"function": {"name", "arguments"}}
        item = inner
    tool = text_in(item, TOOL_MEMBERS)
    return tool, with_run_id(tool, item, read_args(item)), clip(rationale, _LONGEST_RATIONALE)


def _reasoning(answer: WrittenSteps) -> str:
    told = answer.members.get("reasoning")
    if isinstance(told, list):
        told = " ".join(part for part in told if isinstance(part, str))
    return clip(text_of(told), _LONGEST_REASONING)


def _gist(rationale: str) -> str:
    """The first sentence of a rationale, on one line."""
    first = _SENTENCE_END.split(rationale.strip(), maxsplit=1)[0]
    return clip(" ".join(first.split()), _LONGEST_ASKED)


def _line(step: PlannedStep) -> str:
    if step.gap is not None:
        near = f" Nearest: {', '.join(step.gap.suggestions)}." if step.gap.suggestions else ""
        return f"Step {step.order}: nothing to call yet, {step.gap.reason}.{near}"
    args = json.dumps(step.args, ensure_ascii=False) if step.args else ""
    with_args = f" with args {args}" if args else ""
    why = f" - {' '.join(step.rationale.split())}" if step.rationale else ""
    missing = ", ".join(step.missing_args)
    left = f" (still to be filled in: {missing})" if missing else ""
    return f"Step {step.order}: call {step.tool}{with_args}{left}{why}"


def _count(steps: int) -> str:
    return "1 step was" if steps == 1 else f"{steps} steps were"
