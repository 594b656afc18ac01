"""A recorded fit made again under another budget, by the code that makes live fits.

Its order of entries does not depend on a budget, so it is worked out once for both budgets; what
past plans added then is in its receipt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from helmdash.answers import to_json
from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.catalog.trim import Trim, TrimEntry
from helmdash.core.fitting.inputs import (
    Around,
    FilterUse,
    FitInputs,
    fit_inputs,
    recalled_by,
)
from helmdash.core.fitting.prepared import PreparedCatalog
from helmdash.core.fitting.selection import Selection
from helmdash.core.planning.prompts import Task, role_of
from helmdash.core.ranking.ranking import Ranking, order_as_recalled
from helmdash.core.text.tokens import utf8_bytes


class NotReplayable(StrEnum):
    """Why a fit cannot be made again."""

    NO_INPUTS = "no_inputs"  # made before HelmDash kept them, or where texts are not kept in full
    NO_INTENT = "no_intent"  # the project keeps no texts, or not for so long
    NO_CATALOG = "no_catalog"  # its catalog is not kept any more
    FILTER_ASKED = "filter_asked"  # a filter model would be asked, and nobody knows its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFit:
    """A fit as it was kept. receipt: its Trim as JSON."""

    intent: str
    inputs: FitInputs
    receipt: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedFit:
    """A fit under today's budget and under the edited one."""

    before: Trim
    after: Trim
    is_as_recorded: bool
    """Today's budget gives the receipt that is stored, to the byte, timings aside."""


def replay_fit(
    prepared: PreparedCatalog,
    fit: RecordedFit,
    *,
    before: EffectiveBudget,
    after: EffectiveBudget,
) -> ReplayedFit | NotReplayable:
    """Make a fit again under two budgets. prepared: the very catalog that it was made of."""
    ranking = order_as_recalled(prepared.index, fit.intent, recalled_by(fit.receipt))
    # What a budget is called, and why it says what it says, makes no difference to a fit.
    is_same = _figures(before) == _figures(after)
    was = _made(prepared, fit, ranking, before)
    now = was if is_same else _made(prepared, fit, ranking, after)
    if was is None or now is None:
        return NotReplayable.FILTER_ASKED
    return ReplayedFit(
        before=was.trim,
        after=now.trim,
        is_as_recorded=_is_receipt_of(fit.receipt, was.trim),
    )


def receipt_of(trim: Trim) -> dict[str, object]:
    """A Trim as it is stored, without its timings."""
    return without_timings(to_json(trim))


def without_timings(receipt: Mapping[str, object]) -> dict[str, object]:
    """A stored Trim without how long it took, which differs each time."""
    return {name: value for name, value in receipt.items() if name != "timings_ms"}


def _is_receipt_of(receipt: Mapping[str, object], trim: Trim) -> bool:
    """Whether `receipt_of(trim)` is what is stored. The entries, which are nearly all of it, are
    compared as they are: to write them all as JSON takes a quarter of a fit."""
    bare = receipt_of(replace(trim, kept=(), removed=()))
    return (
        bare == {**without_timings(receipt), "kept": [], "removed": []}
        and _are_entries(receipt["kept"], trim.kept)
        and _are_entries(receipt["removed"], trim.removed)
    )


def _are_entries(stored: object, entries: Sequence[TrimEntry]) -> bool:
    if not isinstance(stored, list) or len(stored) != len(entries):
        return False
    return all(
        each
        == {
            "id": entry.id,
            "kind": entry.kind,
            "rank": entry.rank,
            "score": entry.score,
            "history": entry.history,
        }
        for each, entry in zip(stored, entries, strict=True)
    )


def _made(
    prepared: PreparedCatalog, fit: RecordedFit, ranking: Ranking, budget: EffectiveBudget
) -> Selection | None:
    """None: a filter would be asked that was not."""
    inputs = _with_role(fit.inputs, budget.prompt_variant)

    def made(picks: tuple[str, ...]) -> Selection:
        return fit_inputs(
            prepared,
            inputs,
            intent=fit.intent,
            budget=budget,
            picks=picks,
            ranking=ranking,
            renders=False,
        ).selection

    if not inputs.is_plan or inputs.filter_use is FilterUse.BEFORE:
        return made(inputs.picks)
    found = made(())
    if found.doubt is None or not budget.allows_llm_filter:
        return found
    if inputs.filter_use is FilterUse.NO:
        return None
    # Its list of entries is in the order of the ranking, which is the same under any budget.
    return made(inputs.picks) if inputs.picks else found


def _with_role(inputs: FitInputs, variant: PromptVariant) -> FitInputs:
    """The inputs with the role text of the budget's variant, where they had that of the budget."""
    if inputs.variant is None or inputs.variant is variant:
        return inputs
    more = utf8_bytes(role_of(Task.PLAN, variant)) - utf8_bytes(role_of(Task.PLAN, inputs.variant))
    around = tuple(Around(each.user + more, each.prefix + more) for each in inputs.around)
    return replace(inputs, around=around, variant=variant)


def _figures(budget: EffectiveBudget) -> tuple[object, ...]:
    """All that a fit asks of a budget."""
    return (
        budget.most_prompt_tokens,
        budget.max_catalog_bytes,
        budget.tier,
        budget.supports_prefix_cache,
        budget.allows_llm_filter,
        budget.prompt_variant,
        budget.chars_per_token,
        budget.safety_multiplier,
    )
