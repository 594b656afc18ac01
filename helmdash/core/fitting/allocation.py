"""Seating: who is shown how richly, once a catalog has to fit a room.

`selection` tells the story; here are its steps on the board.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.budgets.budgets import Tier
from helmdash.core.fitting.layout import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the room is shared out when entries have to go. A shipped version is never edited.

    rich_entries: how many of the best-ranked are sure of a seat and shown richly, by tier (the
        top-N of helmdeck ADR 050).
    name_share: the part of the room that bare names of further entries may take before anything
        is told about any entry: breadth before wealth, as a tool not shown cannot be planned.
    rich_share: the part kept back from one-liners for the detail of the best.
    long_line_share: a one-liner that adds more than this part of the room is detail, since a
        description without a sentence end is not cut and could take the room of ten others.
    """

    version: str
    rich_entries: Mapping[Tier, int]
    name_share: float
    rich_share: float
    long_line_share: float


POLICY: Final = Policy(
    version="selection-1",
    rich_entries={Tier.A: 25, Tier.B: 25, Tier.C: 12},
    name_share=0.40,
    rich_share=0.15,
    long_line_share=0.05,
)
SELECTION_VERSION: Final = POLICY.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Who is seated first: all by relevance, the filter's picks, those that stand in for named
    packs, and how many of the first are sure of a seat."""

    order: Sequence[int]
    picked: Sequence[int]
    stand_ins: Collection[int]
    rich: int


def fit_board(board: Board, seats: Seats) -> None:
    """Bring the board within its room, and use that room."""
    order = seats.order
    if compact_board(board, order):
        return
    board.show_level(len(board.prepared.totals) - 1)
    board.hide_extras()
    if board.left < 0 and order:
        board.clear()
        _seat(board, seats)
    _refill(board, order)
    if not board.filled and order:
        board.show(order[0], board.layouts[order[0]].bare)


def compact_board(board: Board, order: Sequence[int]) -> bool:
    """Show every entry with what the ladder leaves of it; False where that does not suffice."""
    totals = board.prepared.totals
    board.show_level(0)
    if board.left >= 0:
        return True
    for step in range(1, len(totals)):
        if totals[step] <= board.room:
            _step_down(board, order, step)
            _refill(board, order)
            return True
    return False


def _step_down(board: Board, order: Sequence[int], step: int) -> None:
    """The last step needed: from the least relevant entry up, only until it fits."""
    board.show_level(step - 1)
    for at in reversed(order):
        if board.left >= 0:
            return
        board.show(at, board.layouts[at].levels[step])


def _seat(board: Board, seats: Seats) -> None:
    """Entries have to go: decide who is shown, and the best how richly."""
    best = seats.order[: seats.rich]
    _seat_best(board, seats)
    named = _name_others(board, seats.order[seats.rich :])
    _tell_in_one_line(board, [*best, *named])
    spare = board.spare_beyond(POLICY.rich_share)
    for at in best:
        if not board.is_hidden(at):
            board.try_show(at, board.layouts[at].levels[-1], spare)
    for at in best:
        board.enrich(at, spare)


def _seat_best(board: Board, seats: Seats) -> None:
    """Bare names of the best, and of those that stand in for a pack the intent names.

    All of the best are seated where they fit. Where they do not, some have to go anyway: the
    picks of a filter pass come first, then the stand-ins.
    """
    layouts = board.layouts
    best = seats.order[: seats.rich]
    stand_ins = [at for at in seats.order if at in seats.stand_ins]
    if not all(board.try_show(at, layouts[at].bare) for at in best):
        board.clear()
        best, stand_ins = [*seats.picked, *stand_ins], list(best)
    for at in (*best, *stand_ins):
        if board.is_hidden(at):
            board.try_show(at, layouts[at].bare)


def _name_others(board: Board, others: Sequence[int]) -> list[int]:
    """Bare names of further entries in rank order; tells which of them are shown now."""
    spare = board.spare_beyond(POLICY.name_share)
    for reached, at in enumerate(others):
        if board.left - spare < board.prepared.smallest_bare:
            others = others[:reached]
            break
        if board.is_hidden(at):
            board.try_show(at, board.layouts[at].bare, spare)
    return [at for at in others if not board.is_hidden(at)]


def _tell_in_one_line(board: Board, seated: Sequence[int]) -> None:
    """One-liners in rank order, with something kept back for the detail of the best."""
    spare = int(board.room * POLICY.rich_share)
    longest = int(board.room * POLICY.long_line_share)
    for at in seated:
        line = board.layouts[at].one_line
        if not board.is_hidden(at) and board.price(at, line) <= longest:
            board.try_show(at, line, spare)


def _refill(board: Board, order: Sequence[int]) -> None:
    """Use the room that is left: bare names of hidden entries, then dropped detail, by rank."""
    for at in order:
        if board.left < board.prepared.smallest_bare:
            break
        if board.is_hidden(at):
            board.try_show(at, board.layouts[at].bare)
    for at in order:
        if board.left < board.prepared.cheapest_unit:
            break
        board.enrich(at)
    board.refill_extras()
