"""Selection: the catalog that fits a budget, and the receipt of what that cost.

Source: the cascade of helmdeck ADR 050. Unlike there the full catalog is ranked (never the
compacted one), and room that is left is filled again (ADR 8).

1. It fits as it is: passed through.
2. The ladder of `compaction.STEPS`, each step over the whole catalog; the last one needed goes
   entry by entry from the least relevant up, and stops as soon as it fits.
3. Unknown members of the catalog itself go.
4. Entries have to go: the best-ranked are sure of a place, if only by their bare names; then come
   the names of further entries, then one-liners, then detail of the best, each within its share.
5. Whatever room is left brings dropped detail back, the best-ranked entry first.

The picks of a filter pass go before the ranking, within the same room. Where nobody has to go, a
catalog can be laid out alike for all intents, so that a provider's prefix cache finds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.catalog.compaction import COMPACTION_VERSION, render
from helmdash.core.catalog.trim import LLM_FILTER, LOW_CONFIDENCE, Trim
from helmdash.core.fitting.allocation import (
    SELECTION_VERSION,
    Allocation,
    compact_layout,
    fit_layout,
    rich_entries,
)
from helmdash.core.fitting.doubt import FILTER_VERSION, Doubt, doubt_of
from helmdash.core.fitting.layout import CatalogLayout
from helmdash.core.fitting.prepared import PreparedCatalog, prepare
from helmdash.core.fitting.receipt import list_fates, list_steps
from helmdash.core.ranking.ranking import RANKING_VERSION, PastPlan, Ranking, order_entries

__all__ = [
    "SELECTION_VERSION",
    "Doubt",
    "PreparedCatalog",
    "Selection",
    "prepare",
    "room_for_catalog",
    "select",
    "stable_fits",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The fitted catalog, ready to be sent, and its receipt.

    The catalog shares parts with the one given: read it, do not write to it. order: positions
    of all entries, the most relevant first. is_stable: it was wanted alike for every intent, and
    is. doubt: why the entries left out may be the wrong ones; None where none were.
    """

    catalog: dict[str, object]
    trim: Trim
    order: tuple[int, ...]
    is_stable: bool
    doubt: Doubt | None


def room_for_catalog(budget: EffectiveBudget, fixed_bytes: int = 0) -> int:
    """Bytes the catalog may take: what the longest prompt leaves beside everything else that is
    sent (`fixed_bytes`), and at most `max_catalog_bytes` where that is set. May be negative."""
    room = budget.estimator.bytes_within(budget.most_prompt_tokens) - fixed_bytes
    cap = budget.max_catalog_bytes
    return min(cap, room) if cap > 0 else room


def stable_fits(
    prepared: PreparedCatalog, *, budget: EffectiveBudget, fixed_bytes: int = 0
) -> bool:
    """Whether `select(stable=True)` lays the catalog out alike for every intent.

    It does where compaction suffices and `fixed_bytes` leave room for the layout without them.
    """
    return _stable_layout(prepared, budget, room_for_catalog(budget, fixed_bytes)) is not None


def select(
    prepared: PreparedCatalog,
    *,
    intent: str,
    budget: EffectiveBudget,
    history: Sequence[PastPlan] = (),
    fixed_bytes: int = 0,
    clock: Callable[[], float] | None = None,
    hash_word: Callable[[str], str] | None = None,
    preferred: Sequence[str] = (),
    stable: bool = False,
    ranking: Ranking | None = None,
    renders: bool = True,
) -> Selection:
    """Fit a catalog to a budget for an intent.

    fixed_bytes: UTF-8 bytes of everything else that will be sent. clock: seconds, only for the
    stage timings of the Trim; None: it has none. hash_word: made the sketches in the history; None:
    it has no sketches. preferred: ids that a filter pass picked, which go before all others;
    unknown ones are ignored. stable: detail is spared by id instead of by rank, so that every
    intent gets the same bytes; where that cannot be (see `stable_fits`), as without it. ranking:
    of this intent, where somebody has it already; the history is not asked then. renders False: the
    Trim alone is wanted, and the catalog stays empty. Never raises,
    never empties a catalog that has entries: where not even one bare entry fits, the best one stays
    and the Trim says fits=False.
    """
    started = clock() if clock else 0.0
    room = room_for_catalog(budget, fixed_bytes)
    if ranking is None:
        ranking = order_entries(prepared.index, intent, history, hash_word=hash_word)
    ranked = clock() if clock else 0.0
    layout = _stable_layout(prepared, budget, room) if stable else None
    is_stable = layout is not None
    picked = _picked(prepared, ranking, preferred)
    order = (
        [*picked, *(at for at in ranking.order if at not in picked)] if picked else ranking.order
    )
    if layout is None:
        layout = CatalogLayout(prepared, room)
        rich = max(rich_entries(budget.tier), len(picked))
        fit_layout(
            layout,
            Allocation(order=order, picked=picked, substitutes=ranking.substitutes, rich=rich),
        )
    catalog = _assemble(layout, order) if renders else {}
    hidden = frozenset(at for at in ranking.order if layout.is_hidden(at))
    named = frozenset(at for at in ranking.order if layout.is_only_named(at))
    recalled = max(ranking.history.values(), default=0.0)
    doubt = doubt_of(prepared, intent, hidden=hidden, named=named, recalled=recalled)
    flags = [LOW_CONFIDENCE] if doubt or preferred else []
    if preferred:
        kept = sum(not layout.is_hidden(at) for at in picked)
        flags.append(LLM_FILTER.format(picks=len(preferred), kept=kept))
    timings = {}
    if clock:
        timings = {"rank": (ranked - started) * 1e3, "fit": (clock() - ranked) * 1e3}
    trim = _receipt(layout, ranking, room, flags, timings)
    return Selection(
        catalog=catalog, trim=trim, order=ranking.order, is_stable=is_stable, doubt=doubt
    )


def _picked(
    prepared: PreparedCatalog, ranking: Ranking, preferred: Sequence[str]
) -> tuple[int, ...]:
    """Where the preferred entries are, in rank order."""
    positions = prepared.index.positions
    wanted = {positions[id] for id in preferred if id in positions}
    return tuple(at for at in ranking.order if at in wanted) if wanted else ()


def _stable_layout(
    prepared: PreparedCatalog, budget: EffectiveBudget, room: int
) -> CatalogLayout | None:
    """The layout for any intent: by id, into the room there is with nothing else sent.

    None where entries would have to go, or where the layout does not fit into `room`.
    """
    widest = room_for_catalog(budget)
    if prepared.totals[-1] > room:
        return None
    layout = CatalogLayout(prepared, widest)
    compact_layout(layout, prepared.index.by_id)
    return layout if layout.used <= room else None


def _assemble(layout: CatalogLayout, order: Sequence[int]) -> dict[str, object]:
    """The catalog as it is shown: in the order given, or by rank once entries are missing."""
    prepared = layout.prepared
    by_rank = layout.has_hidden
    lists: dict[str, list[object]] = {key: [] for key in prepared.frame.lists.values()}
    for at in order if by_rank else range(len(prepared.layouts)):
        item = prepared.layouts[at]
        if not layout.is_hidden(at):
            lists[prepared.frame.lists[item.entry.kind]].append(render(item, layout.masks[at]))
    extras = enumerate(prepared.frame.extras)
    gone = {key for at, extra in extras if at not in layout.extras for key in extra.keys}
    raw = prepared.catalog.raw
    return {key: lists.get(key, raw[key]) for key in raw if key not in gone}


def _receipt(
    layout: CatalogLayout,
    ranking: Ranking,
    room: int,
    flags: Sequence[str],
    timings_ms: Mapping[str, float],
) -> Trim:
    kept, removed = list_fates(layout, ranking)
    versions = {
        "ranking": RANKING_VERSION,
        "compaction": COMPACTION_VERSION,
        "selection": SELECTION_VERSION,
    }
    if flags:
        versions["filter"] = FILTER_VERSION
    return Trim(
        before_bytes=layout.prepared.totals[0],
        after_bytes=layout.used,
        fits=layout.used <= room,
        limit_bytes=max(room, 0),
        steps=list_steps(layout),
        kept=kept,
        removed=removed,
        versions=versions,
        timings_ms=timings_ms,
        flags=tuple(flags),
    )
