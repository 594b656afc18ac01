"""Allocation of room: which entries are shown, and how richly, once a catalog has to fit.

`selection` tells the story; here are its steps on the layout.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from helmdash.core.budgets.budgets import Tier
from helmdash.core.fitting.layout import CatalogLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the room is shared out when entries have to go. A shipped version is never edited.

    name_share: the part of the room that bare names of further entries may take before anything
        is told about any entry: breadth before wealth, as a tool not shown cannot be planned.
    rich_share: the part kept back from one-liners for the detail of the best.
    long_line_share: a one-liner that adds more than this part of the room is detail, since a
        description without a sentence end is not cut and could take the room of ten others.
    """

    version: str
    name_share: float
    rich_share: float
    long_line_share: float


POLICY: Final = Policy(
    version="selection-1",
    name_share=0.40,
    rich_share=0.15,
    long_line_share=0.05,
)
SELECTION_VERSION: Final = POLICY.version


def rich_entries(tier: Tier) -> int:
    """How many of the best-ranked are sure of a place and shown richly (the top-N of helmdeck ADR
    050). Belongs to the policy's version."""
    match tier:
        case Tier.A | Tier.B:
            return 25
        case Tier.C:
            return 12
        case _:
            assert_never(tier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Who comes first: all by relevance, the filter's picks, substitutes for packs that the intent
    names, and how many of the first (`rich`) are sure of a place."""

    order: Sequence[int]
    picked: Sequence[int]
    substitutes: Collection[int]
    rich: int


def fit_layout(layout: CatalogLayout, allocation: Allocation) -> None:
    """Bring the layout within its room, and use that room."""
    order = allocation.order
    if compact_layout(layout, order):
        return
    layout.show_level(len(layout.prepared.totals) - 1)
    layout.hide_extras()
    if layout.left < 0 and order:
        layout.clear()
        _allocate(layout, allocation)
    _refill(layout, order)
    if not layout.filled and order:
        layout.show(order[0], layout.items[order[0]].bare)


def compact_layout(layout: CatalogLayout, order: Sequence[int]) -> bool:
    """Show every entry with what the ladder leaves of it; False where that does not suffice."""
    totals = layout.prepared.totals
    layout.show_level(0)
    if layout.left >= 0:
        return True
    for step in range(1, len(totals)):
        if totals[step] <= layout.room:
            _step_down(layout, order, step)
            _refill(layout, order)
            return True
    return False


def _step_down(layout: CatalogLayout, order: Sequence[int], step: int) -> None:
    """The last step needed: from the least relevant entry up, only until it fits."""
    layout.show_level(step - 1)
    for at in reversed(order):
        if layout.left >= 0:
            return
        layout.show(at, layout.items[at].levels[step])


def _allocate(layout: CatalogLayout, allocation: Allocation) -> None:
    """Entries have to go: decide who is shown, and the best how richly."""
    best = allocation.order[: allocation.rich]
    _allocate_best(layout, allocation)
    named = _name_others(layout, allocation.order[allocation.rich :])
    _tell_in_one_line(layout, [*best, *named])
    spare = layout.spare_beyond(POLICY.rich_share)
    for at in best:
        if not layout.is_hidden(at):
            layout.try_show(at, layout.items[at].levels[-1], spare)
    for at in best:
        layout.enrich(at, spare)


def _allocate_best(layout: CatalogLayout, allocation: Allocation) -> None:
    """Bare names of the best, and of those that stand in for a pack the intent names.

    All of the best are shown where they fit. Where they do not, some have to go anyway: the
    picks of a filter pass come first, then the substitutes.
    """
    items = layout.items
    best = allocation.order[: allocation.rich]
    substitutes = [at for at in allocation.order if at in allocation.substitutes]
    if not all(layout.try_show(at, items[at].bare) for at in best):
        layout.clear()
        best, substitutes = [*allocation.picked, *substitutes], list(best)
    for at in (*best, *substitutes):
        if layout.is_hidden(at):
            layout.try_show(at, items[at].bare)


def _name_others(layout: CatalogLayout, others: Sequence[int]) -> list[int]:
    """Bare names of further entries in rank order; tells which of them are shown now."""
    spare = layout.spare_beyond(POLICY.name_share)
    for reached, at in enumerate(others):
        if layout.left - spare < layout.prepared.smallest_bare:
            others = others[:reached]
            break
        if layout.is_hidden(at):
            layout.try_show(at, layout.items[at].bare, spare)
    return [at for at in others if not layout.is_hidden(at)]


def _tell_in_one_line(layout: CatalogLayout, chosen: Sequence[int]) -> None:
    """One-liners in rank order, with something kept back for the detail of the best."""
    spare = int(layout.room * POLICY.rich_share)
    longest = int(layout.room * POLICY.long_line_share)
    for at in chosen:
        line = layout.items[at].one_line
        if not layout.is_hidden(at) and layout.price(at, line) <= longest:
            layout.try_show(at, line, spare)


def _refill(layout: CatalogLayout, order: Sequence[int]) -> None:
    """Use the room that is left: bare names of hidden entries, then dropped detail, by rank."""
    for at in order:
        if layout.left < layout.prepared.smallest_bare:
            break
        if layout.is_hidden(at):
            layout.try_show(at, layout.items[at].bare)
    for at in order:
        if layout.left < layout.prepared.cheapest_unit:
            break
        layout.enrich(at)
    layout.refill_extras()
