"""The receipt of a fitted catalog: each entry's fate, and what every step really saved."""

from __future__ import annotations

from typing import Final

from helmdash.core.catalog.compaction import CATALOG_EXTRA, ONE_LINE, STEPS, TOP_N, saved_by_step
from helmdash.core.catalog.detail import DropOrder
from helmdash.core.catalog.trim import TrimEntry, TrimStep
from helmdash.core.fitting.layout import HIDDEN, CatalogLayout
from helmdash.core.ranking.ranking import Ranking

_LABELS: Final = {step.drops: step.label for step in STEPS}


def list_fates(
    layout: CatalogLayout, ranking: Ranking
) -> tuple[tuple[TrimEntry, ...], tuple[TrimEntry, ...]]:
    """The entries kept and those removed, each in rank order."""
    kept: list[TrimEntry] = []
    removed: list[TrimEntry] = []
    for place, at in enumerate(ranking.order, start=1):
        entry = layout.items[at].entry
        fate = removed if layout.is_hidden(at) else kept
        past = ranking.history.get(at, 0.0)
        fate.append(TrimEntry(entry.id, entry.kind, place, ranking.scores[at], past))
    return tuple(kept), tuple(removed)


def list_steps(layout: CatalogLayout) -> tuple[TrimStep, ...]:
    """The steps that changed anything, in order; their bytes add up to all that was saved."""
    if layout.used == layout.prepared.totals[0]:
        return ()
    counts = dict.fromkeys(DropOrder, 0)
    saved = dict.fromkeys(DropOrder, 0)
    for item, mask in zip(layout.items, layout.masks, strict=True):
        if mask == item.full.mask or mask == HIDDEN:
            continue
        for drop, size in item.saved.get(mask) or saved_by_step(item.detail, mask):
            counts[drop] += 1
            saved[drop] += size
    steps = [TrimStep(label, counts[drop], saved[drop]) for drop, label in _LABELS.items()]
    steps += [_extras_step(layout), _removal_step(layout)]
    steps.append(TrimStep(ONE_LINE, counts[DropOrder.ONE_LINE], saved[DropOrder.ONE_LINE]))
    return tuple(step for step in steps if step.entries)


def _extras_step(layout: CatalogLayout) -> TrimStep:
    """What dropping unknown members of the catalog itself saved; `entries` counts members."""
    frame, filled = layout.prepared.frame, len(layout.filled)
    dropped = [extra for at, extra in enumerate(frame.extras) if at not in layout.extras]
    saved = frame.size(filled, frame.extra_bytes) - frame.size(filled, layout.extra_bytes)
    return TrimStep(CATALOG_EXTRA, sum(len(extra.keys) for extra in dropped), saved)


def _removal_step(layout: CatalogLayout) -> TrimStep:
    """What leaving entries out saved: each with its comma, less the brackets of a list emptied."""
    removed = [item for at, item in enumerate(layout.items) if layout.is_hidden(at)]
    emptied = len({item.entry.kind for item in removed} - layout.filled)
    saved = sum(item.full.size + 1 for item in removed)
    return TrimStep(TOP_N, len(removed), saved - emptied)
