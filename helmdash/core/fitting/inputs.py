"""All that a fit was made of besides its catalog, its intent and the past: small enough to be kept
with each fit, so that the same fit can be made again under another budget.

A live fit and one that is replayed go through the same function here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant
from helmdash.core.fitting.prepared import PreparedCatalog
from helmdash.core.fitting.selection import Selection, select, stable_fits
from helmdash.core.ranking.ranking import PastPlan, Ranking

# Of what is stored. Another version is not read: such a fit cannot be made again.
INPUTS_VERSION: Final = "inputs-1"


class FilterUse(StrEnum):
    """Whether a filter pass was asked which entries matter."""

    NO = "no"
    HERE = "here"  # for this fit, which was in doubt without it
    BEFORE = "before"  # for an earlier try of the same plan


@dataclass(frozen=True, slots=True)
class Around:
    """UTF-8 bytes of all that is sent beside the catalog: with the catalog in the user message,
    and with it in the system prompt (which has another blank line)."""

    user: int
    prefix: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitInputs:
    """around: tried in this order until the catalog fits; the last one counts as it is.

    catalog_bytes: what this try of a plan allowed the catalog at most; None: as the budget says.
    variant: that of the budget, whose role text `around` counts; None: there is none, or it was
    asked for, whatever the budget says. is_plan: made for a plan or a route, where a doubt asks the
    filter; picks: what that answered.
    """

    around: tuple[Around, ...]
    catalog_bytes: int | None = None
    variant: PromptVariant | None = None
    is_plan: bool = False
    filter_use: FilterUse = FilterUse.NO
    picks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return {
            "v": INPUTS_VERSION,
            "around": [[each.user, each.prefix] for each in self.around],
            "catalog_bytes": self.catalog_bytes,
            "variant": self.variant.value if self.variant else None,
            "is_plan": self.is_plan,
            "filter": self.filter_use.value,
            "picks": list(self.picks),
        }


def read_inputs(stored: object) -> FitInputs | None:
    """What `to_json` gave; None for what another version stored, or nobody."""
    match stored:
        case {
            "v": version,
            "around": list(around),
            "catalog_bytes": catalog_bytes,
            "variant": variant,
            "is_plan": bool(is_plan),
            "filter": str(use),
            "picks": list(picks),
        } if version == INPUTS_VERSION:
            return FitInputs(
                around=tuple(Around(int(user), int(prefix)) for user, prefix in around),
                catalog_bytes=catalog_bytes if isinstance(catalog_bytes, int) else None,
                variant=PromptVariant(variant) if variant else None,
                is_plan=is_plan,
                filter_use=FilterUse(use),
                picks=tuple(map(str, picks)),
            )
    return None


@dataclass(frozen=True, slots=True)
class FitMade:
    """A fit, the place of what was around it in FitInputs.around, and the budget with its cap."""

    selection: Selection
    at: int
    budget: EffectiveBudget


def fit_inputs(
    prepared: PreparedCatalog,
    inputs: FitInputs,
    *,
    intent: str,
    budget: EffectiveBudget,
    picks: Sequence[str] = (),
    history: Sequence[PastPlan] = (),
    hash_word: Callable[[str], str] | None = None,
    clock: Callable[[], float] | None = None,
    ranking: Ranking | None = None,
    renders: bool = True,
) -> FitMade:
    """Fit a catalog with the first of `inputs.around` that it fits with; else with the last.

    picks: of a filter pass, where it has been asked. The others as `selection.select` has them.
    Never raises.
    """
    budget = _capped(budget, inputs.catalog_bytes)
    made = []
    for around in inputs.around:
        stable = goes_in_prefix(prepared, budget, around.prefix)
        selection = select(
            prepared,
            intent=intent,
            budget=budget,
            history=history,
            hash_word=hash_word,
            fixed_bytes=around.prefix if stable else around.user,
            preferred=picks,
            stable=stable,
            clock=clock,
            ranking=ranking,
            renders=renders,
        )
        made.append(selection)
        if selection.trim.fits:
            break
    return FitMade(made[-1], len(made) - 1, budget)


def goes_in_prefix(prepared: PreparedCatalog, budget: EffectiveBudget, fixed_bytes: int) -> bool:
    """Whether the catalog can be the same for every intent, and so belongs in a cached prefix.

    A catalog that has to lose entries depends on the intent: in the prefix it would only make
    every prefix another one.
    """
    return budget.supports_prefix_cache and stable_fits(
        prepared, budget=budget, fixed_bytes=fixed_bytes
    )


def recalled_by(receipt: Mapping[str, object]) -> dict[str, float]:
    """What past plans added to the score of each entry, by its id. receipt: a Trim as JSON."""
    found: dict[str, float] = {}
    for fate in ("kept", "removed"):
        entries = receipt.get(fate)
        for each in entries if isinstance(entries, list) else ():
            match each:
                case {"id": str(id), "history": int(past) | float(past)} if past:
                    found[id] = float(past)
    return found


def _capped(budget: EffectiveBudget, catalog_bytes: int | None) -> EffectiveBudget:
    """The budget with a smaller catalog, where a try wants one."""
    if catalog_bytes is None:
        return budget
    cap = budget.max_catalog_bytes
    return replace(budget, max_catalog_bytes=min(cap, catalog_bytes) if cap > 0 else catalog_bytes)
