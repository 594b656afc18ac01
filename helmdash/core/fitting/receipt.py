"""The receipt of a fitted board: each entry's fate, and what every step really saved."""

from __future__ import annotations

from typing import Final

from helmdash.core.catalog.compaction import CATALOG_EXTRA, ONE_LINE, STEPS, TOP_N, saved_by_step
from helmdash.core.catalog.detail import Loss
from helmdash.core.catalog.trim import TrimEntry, TrimStep
from helmdash.core.fitting.layout import HIDDEN, Board
from helmdash.core.ranking.ranking import Ranking

_LABELS: Final = {step.drops: step.label for step in STEPS}


def list_fates(
    board: Board, ranking: Ranking
) -> tuple[tuple[TrimEntry, ...], tuple[TrimEntry, ...]]:
    """The entries kept and those removed, each in rank order."""
    kept: list[TrimEntry] = []
    removed: list[TrimEntry] = []
    for place, at in enumerate(ranking.order, start=1):
        entry = board.layouts[at].entry
        fate = removed if board.is_hidden(at) else kept
        past = ranking.history.get(at, 0.0)
        fate.append(TrimEntry(entry.id, entry.kind, place, ranking.scores[at], past))
    return tuple(kept), tuple(removed)


def list_steps(board: Board) -> tuple[TrimStep, ...]:
    """The steps that changed anything, in order; their bytes add up to all that was saved."""
    if board.used == board.prepared.totals[0]:
        return ()
    counts = dict.fromkeys(Loss, 0)
    saved = dict.fromkeys(Loss, 0)
    for layout, mask in zip(board.layouts, board.masks, strict=True):
        if mask == layout.full.mask or mask == HIDDEN:
            continue
        for loss, size in layout.saved.get(mask) or saved_by_step(layout.detail, mask):
            counts[loss] += 1
            saved[loss] += size
    steps = [TrimStep(label, counts[loss], saved[loss]) for loss, label in _LABELS.items()]
    steps += [_extras_step(board), _removal_step(board)]
    steps.append(TrimStep(ONE_LINE, counts[Loss.ONE_LINE], saved[Loss.ONE_LINE]))
    return tuple(step for step in steps if step.entries)


def _extras_step(board: Board) -> TrimStep:
    """What dropping unknown members of the catalog itself saved; `entries` counts members."""
    frame, filled = board.prepared.frame, len(board.filled)
    dropped = [extra for at, extra in enumerate(frame.extras) if at not in board.extras]
    saved = frame.size(filled, frame.extra_bytes) - frame.size(filled, board.extra_bytes)
    return TrimStep(CATALOG_EXTRA, sum(len(extra.keys) for extra in dropped), saved)


def _removal_step(board: Board) -> TrimStep:
    """What leaving entries out saved: each with its comma, less the brackets of a list emptied."""
    removed = [layout for at, layout in enumerate(board.layouts) if board.is_hidden(at)]
    emptied = len({layout.entry.kind for layout in removed} - board.filled)
    saved = sum(layout.full.size + 1 for layout in removed)
    return TrimStep(TOP_N, len(removed), saved - emptied)
