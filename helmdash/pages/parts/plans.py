"""What a plan's page shows of its answer: the stored answer where texts are kept, else its rows.

The answer is JSON of ours (operations/planning), but of whichever version wrote it: what is
missing or of another type is left out, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helmdash.core.planning.plans import PIPELINE_RUN, UNKNOWN_TOOL
from helmdash.queries.plans import StepView

_NO_ENTRY = "The catalog has no entry for it."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step for reading. `tool` is the catalog's id; "" for a gap.

    args None: they are not kept. faults: field and sentence for each argument that is wrong;
    missing: paths of required ones that were left open.
    """

    order: int
    tool: str
    client_tool: str
    is_pipeline: bool
    args: object | None
    rationale: str
    faults: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    gap: str
    asked: str
    suggestions: tuple[str, ...]

    @property
    def is_gap(self) -> bool:
        """Whether the catalog has nothing for it."""
        return not self.tool


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOption:
    """Where a route leads, or might have led. `id` is "" where nothing serves."""

    kind: str
    id: str
    why: str
    inputs: object | None
    faults: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What the catalog does not offer; `proposal` describes a pack that would."""

    capability: str
    proposal: object | None
    suggestions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """An answer, taken apart for the page."""

    steps: tuple[StepRow, ...]
    recommendation: RouteOption | None
    alternatives: tuple[RouteOption, ...]
    lack: Lack | None
    rewritten_prompt: str
    reasoning: str
    notes: tuple[str, ...]
    is_partial: bool
    is_done: bool


def parts_of(result: object, kept: Sequence[StepView]) -> Parts:
    """An answer's parts. `result` None: texts are not kept, or there is no answer (yet)."""
    answer = _mapping(result)
    told = _mappings(answer.get("steps"))
    recommendation = answer.get("recommendation")
    return Parts(
        steps=tuple(_step(each, at) for at, each in enumerate(told, 1))
        or tuple(_row(each) for each in kept),
        recommendation=_choice(recommendation) if isinstance(recommendation, Mapping) else None,
        alternatives=tuple(_choice(each) for each in _mappings(answer.get("alternatives"))),
        lack=_lack(answer.get("gap_warning")),
        rewritten_prompt=_text(answer.get("rewritten_prompt")),
        reasoning=_text(answer.get("reasoning")),
        notes=_texts(answer.get("notes")),
        is_partial=answer.get("partial") is True,
        is_done=answer.get("done") is True,
    )


def _step(told: Mapping[str, object], at: int) -> StepRow:
    tool, args = _text(told.get("tool")), told.get("args")
    gap = _mapping(told.get("gap"))
    order = told.get("order")
    pipeline = _mapping(args).get("id") if tool == PIPELINE_RUN else None
    is_gap = bool(gap) or tool == UNKNOWN_TOOL
    reason = _text(gap.get("reason")) or (_NO_ENTRY if is_gap else "")
    rationale = _text(told.get("rationale"))
    return StepRow(
        order=order if isinstance(order, int) else at,
        tool="" if is_gap else _text(pipeline) or tool,
        client_tool=_text(told.get("client_tool")),
        is_pipeline=pipeline is not None,
        args=args,
        rationale=rationale,
        faults=_faults(told.get("arg_errors")),
        missing=_texts(told.get("missing_args")),
        # A rationale of a gap may begin with the reason.
        gap="" if reason in rationale else reason,
        asked=_text(gap.get("asked")),
        suggestions=_texts(gap.get("suggestions")),
    )


def _row(kept: StepView) -> StepRow:
    return StepRow(
        order=kept.position,
        tool=kept.entry or "",
        client_tool="",
        is_pipeline=kept.is_pipeline,
        args=kept.args,
        rationale=kept.rationale or "",
        faults=(),
        missing=(),
        gap=kept.gap or ("" if kept.entry else _NO_ENTRY),
        asked=kept.asked or "",
        suggestions=kept.suggestions,
    )


def _choice(told: Mapping[str, object]) -> RouteOption:
    return RouteOption(
        kind=_text(told.get("kind")),
        id=_text(told.get("id")),
        why=_text(told.get("why")),
        inputs=told.get("suggested_inputs"),
        faults=_faults(told.get("arg_errors")),
        missing=_texts(told.get("missing_args")),
    )


def _lack(told: object) -> Lack | None:
    if not isinstance(told, Mapping):
        return None
    return Lack(
        capability=_text(told.get("missing_capability")),
        proposal=told.get("proposed_pack") or None,
        suggestions=_texts(told.get("suggestions")),
    )


def _faults(told: object) -> tuple[tuple[str, str], ...]:
    return tuple((_text(each.get("field")), _text(each.get("message"))) for each in _mappings(told))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
