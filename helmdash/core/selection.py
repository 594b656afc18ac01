"""Selection: the catalog that fits a budget, and the receipt of what that cost.

Source: decisions.md "Fit" and the seed's cascade (ADR 050), with its defects put right: the
full catalog is ranked (never the compacted one), and room that is left is filled again.

1. It fits as it is: passed through.
2. The ladder of `compaction.STEPS`, each step over the whole catalog; the last one needed goes
   entry by entry from the least relevant up, and stops as soon as it fits.
3. Unknown members of the catalog itself go.
4. Entries have to go: the best-ranked are sure of a seat, if only by their bare names; then come
   the names of further entries, then one-liners, then detail of the best, each within its share.
5. Whatever room is left brings dropped detail back, the best-ranked entry first.

The picks of a filter pass go before the ranking, within the same room. Where nobody has to go, a
catalog can be laid out alike for all intents, so that a provider's prefix cache finds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.board import Board
from helmdash.core.budgets import EffectiveBudget, Tier
from helmdash.core.compaction import COMPACTION_VERSION, render
from helmdash.core.filter_pass import FILTER_VERSION, Doubt, doubt_of
from helmdash.core.prepared import PreparedCatalog, prepare
from helmdash.core.ranking import RANKING_VERSION, PastPlan, Ranking, order_entries
from helmdash.core.receipt import list_fates, list_steps
from helmdash.core.trim import LLM_FILTER, LOW_CONFIDENCE, Trim

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
class Policy:
    """How the room is shared out when entries have to go. A shipped version is never edited.

    rich_entries: how many of the best-ranked are sure of a seat and shown richly, by tier (the
        seed's top-N).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seats:
    """Who is seated first: all by relevance, the filter's picks, those that stand in for named
    packs, and how many of the first are sure of a seat."""

    order: Sequence[int]
    picked: Sequence[int]
    stand_ins: Collection[int]
    rich: int


def room_for_catalog(budget: EffectiveBudget, fixed_bytes: int = 0) -> int:
    """Bytes the catalog may take: what the input ceiling leaves beside everything else that is
    sent (`fixed_bytes`), and at most `max_catalog_bytes` where that is set. May be negative."""
    room = budget.estimator.bytes_within(budget.input_tokens) - fixed_bytes
    cap = budget.max_catalog_bytes
    return min(cap, room) if cap > 0 else room


def stable_fits(
    prepared: PreparedCatalog, *, budget: EffectiveBudget, fixed_bytes: int = 0
) -> bool:
    """Whether `select(stable=True)` lays the catalog out alike for every intent.

    It does where compaction suffices and `fixed_bytes` leave room for the layout without them.
    """
    return _stable_board(prepared, budget, room_for_catalog(budget, fixed_bytes)) is not None


def select(
    prepared: PreparedCatalog,
    *,
    intent: str,
    budget: EffectiveBudget,
    history: Sequence[PastPlan] = (),
    fixed_bytes: int = 0,
    clock: Callable[[], float] | None = None,
    hide: Callable[[str], str] | None = None,
    preferred: Sequence[str] = (),
    stable: bool = False,
) -> Selection:
    """Fit a catalog to a budget for an intent.

    fixed_bytes: UTF-8 bytes of everything else that will be sent. clock: seconds, only for the
    stage timings of the Trim. hide: how sketches in the history were made. preferred: ids that a
    filter pass picked, which go before all others; unknown ones are ignored. stable: detail is
    spared by id instead of by rank, so that every intent gets the same bytes; where that cannot
    be (see `stable_fits`), as without it. Never raises, never empties a catalog that has
    entries: where not even one bare entry fits, the best one stays and the Trim says fits=False.
    """
    started = clock() if clock else 0.0
    room = room_for_catalog(budget, fixed_bytes)
    ranking = order_entries(prepared.index, intent, history, hide=hide)
    ranked = clock() if clock else 0.0
    board = _stable_board(prepared, budget, room) if stable else None
    is_stable = board is not None
    picked = _picked(prepared, ranking, preferred)
    order = [*picked, *(at for at in ranking.order if at not in picked)] if picked else ranking.order
    if board is None:
        board = Board(prepared, room)
        rich = max(POLICY.rich_entries[budget.tier], len(picked))
        _fit(board, _Seats(order=order, picked=picked, stand_ins=ranking.stand_ins, rich=rich))
    catalog = _assemble(board, order)
    hidden = frozenset(at for at in ranking.order if board.is_hidden(at))
    doubt = doubt_of(prepared, intent, hidden=hidden)
    flags = [LOW_CONFIDENCE] if doubt or preferred else []
    if preferred:
        kept = sum(not board.is_hidden(at) for at in picked)
        flags.append(LLM_FILTER.format(picks=len(preferred), kept=kept))
    timings = {}
    if clock:
        timings = {"rank": (ranked - started) * 1e3, "fit": (clock() - ranked) * 1e3}
    trim = _receipt(board, ranking, room, flags, timings)
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


def _stable_board(
    prepared: PreparedCatalog, budget: EffectiveBudget, room: int
) -> Board | None:
    """The layout for any intent: by id, into the room there is with nothing else sent.

    None where entries would have to go, or where the layout does not fit into `room`.
    """
    widest = room_for_catalog(budget)
    if prepared.totals[-1] > room:
        return None
    board = Board(prepared, widest)
    _compact(board, prepared.index.by_id)
    return board if board.used <= room else None


def _fit(board: Board, seats: _Seats) -> None:
    """Bring the board within its room, and use that room."""
    order = seats.order
    if _compact(board, order):
        return
    board.show_level(len(board.prepared.totals) - 1)
    board.hide_extras()
    if board.left < 0 and order:
        board.clear()
        _seat(board, seats)
    _refill(board, order)
    if not board.filled and order:
        board.show(order[0], board.layouts[order[0]].bare)


def _compact(board: Board, order: Sequence[int]) -> bool:
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


def _seat(board: Board, seats: _Seats) -> None:
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


def _seat_best(board: Board, seats: _Seats) -> None:
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


def _assemble(board: Board, order: Sequence[int]) -> dict[str, object]:
    """The catalog as it is shown: in the order given, or by rank once entries are missing."""
    prepared = board.prepared
    by_rank = board.has_hidden
    lists: dict[str, list[object]] = {key: [] for key in prepared.frame.lists.values()}
    for at in order if by_rank else range(len(prepared.layouts)):
        layout = prepared.layouts[at]
        if not board.is_hidden(at):
            lists[prepared.frame.lists[layout.entry.kind]].append(render(layout, board.masks[at]))
    extras = enumerate(prepared.frame.extras)
    gone = {key for at, extra in extras if at not in board.extras for key in extra.keys}
    raw = prepared.catalog.raw
    return {key: lists.get(key, raw[key]) for key in raw if key not in gone}


def _receipt(
    board: Board,
    ranking: Ranking,
    room: int,
    flags: Sequence[str],
    timings_ms: Mapping[str, float],
) -> Trim:
    kept, removed = list_fates(board, ranking)
    versions = {
        "ranking": RANKING_VERSION,
        "compaction": COMPACTION_VERSION,
        "selection": SELECTION_VERSION,
    }
    if flags:
        versions["filter"] = FILTER_VERSION
    return Trim(
        before_bytes=board.prepared.totals[0],
        after_bytes=board.used,
        fits=board.used <= room,
        limit_bytes=max(room, 0),
        steps=list_steps(board),
        kept=kept,
        removed=removed,
        versions=versions,
        timings_ms=timings_ms,
        flags=tuple(flags),
    )
