"""Adding what waits to the rollups: some transactions of recording at a time, in their order.

A fold takes rows off the queue and adds their figures in one transaction, so that a crash leaves
both as they were. What those rows come to is reckoned before it, for on SQLite nobody records while
it lasts. One process folds at a time, by a job's lease; where two believe they have it, or somebody
rebuilds, the lock of `take_turn` holds, and who finds rows gone reads the queue again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import connection
from django.db.models import Count, Min, Sum

from helmdash.core.rollups.figures import Change, Counts, Place, add, tally
from helmdash.core.rollups.periods import Width, period_of
from helmdash.operations.database.transactions import write
from helmdash.operations.rollups.storing import store_slots
from helmdash.records.models import RollupState, UncountedCalls
from helmdash.records.rollups.call_facts import load_changes
from helmdash.records.rollups.level_counts import count_levels, dump_levels, load_levels
from helmdash.records.rollups.rollup_keys import key_text
from helmdash.records.rollups.rollup_rows import Slot, read_slots

# Transactions of recording that are added at once: some tenths of a second where each is a batch
# of 500 calls, ten milliseconds where each is a call.
MOST_GROUPS = 200
# The server folds when so many calls wait or the oldest has waited for so long. What a fold costs
# hangs on the rollups it touches more than on the calls; what a reader has to count meanwhile is
# ten milliseconds' work.
ENOUGH_CALLS = 2_000
LONGEST_WAIT = timedelta(seconds=60)
# Among all programs that lock by number in this database: who folds or rebuilds.
_TURN = 0x68_6D_72_75


def fold(*, most_groups: int = MOST_GROUPS) -> int:
    """Add the oldest of what waits, of all projects; how many calls. 0 where another is at it."""
    waiting = _read(most_groups)
    return write(partial(_fold, waiting)) if waiting.numbers else 0


def fold_all() -> int:
    """Add all that waits; how many calls. Stops where another process is at it."""
    calls = 0
    while done := fold():
        calls += done
    return calls


def is_due(now: datetime) -> bool:
    """Whether adding what waits is worth its while. One query over what waits."""
    waiting = UncountedCalls.objects.aggregate(
        calls=Sum("calls"), rows=Count("id"), oldest=Min("at")
    )
    is_old = waiting["oldest"] is not None and now - waiting["oldest"] >= LONGEST_WAIT
    is_much = (waiting["calls"] or 0) >= ENOUGH_CALLS or waiting["rows"] >= MOST_GROUPS
    return is_old or is_much


def take_turn(*, wait: bool) -> bool:
    """Be the one that writes rollups until the transaction ends; False: another one is.

    On SQLite whoever writes is the only one.
    """
    if connection.vendor != "postgresql":
        return True
    take = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {take}(%s)", [_TURN])
        row = cursor.fetchone()
    return wait or bool(row and row[0])


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The oldest rows of the queue, and by project what they come to.

    moves: by how many more conversations, or fewer, stand at each level; newest: the number of the
    newest row.
    """

    numbers: list[int]
    calls: int
    figures: dict[int, dict[Slot, Counts]]
    moves: dict[int, Counter[int]]
    newest: dict[int, int]


def _read(most_groups: int) -> _Waiting:
    rows = UncountedCalls.objects.order_by("id")
    columns = ("id", "project_id", "calls", "changes", "levels")
    taken = list(rows.values_list(*columns)[:most_groups])
    changes: dict[int, list[Change]] = {}
    moves: dict[int, Counter[int]] = {}
    for _, project_id, _, text, levels in taken:
        changes.setdefault(project_id, []).extend(load_changes(text))
        moves.setdefault(project_id, Counter()).update(load_levels(levels))
    return _Waiting(
        numbers=[row[0] for row in taken],
        calls=sum(row[2] for row in taken),
        figures={
            project_id: _of_every_width(tally(told).items()) for project_id, told in changes.items()
        },
        moves=moves,
        newest={project_id: number for number, project_id, *_ in taken},
    )


def _fold(waiting: _Waiting) -> int:
    if not take_turn(wait=False):
        return 0
    rows = UncountedCalls.objects.filter(id__in=waiting.numbers)
    if rows.count() != len(waiting.numbers):
        # Another one was at it since they were read, and now nobody is.
        waiting = _read(len(waiting.numbers))
        rows = UncountedCalls.objects.filter(id__in=waiting.numbers)
    for project_id, added in waiting.figures.items():
        _add(project_id, added)
    _add_levels(waiting.moves, waiting.newest)
    rows.delete()
    return waiting.calls


def _add_levels(moves: Mapping[int, Counter[int]], newest: Mapping[int, int]) -> None:
    """Add to how many conversations stand at each level; by project, also the number of the newest
    row that is added. The first time they are counted."""
    known = dict(RollupState.objects.filter(pk__in=moves).values_list("pk", "levels"))
    states = []
    for project_id, moved in moves.items():
        stored = known.get(project_id)
        levels = load_levels(stored) if stored else count_levels(project_id)
        levels.update(moved)
        states.append(
            RollupState(
                project_id=project_id, folded_to=newest[project_id], levels=dump_levels(levels)
            )
        )
    RollupState.objects.bulk_create(
        states,
        update_conflicts=True,
        unique_fields=["project"],
        update_fields=["folded_to", "levels"],
    )


def _add(project_id: int, added: Mapping[Slot, Counts]) -> None:
    """Add figures to the rows of every width. They stay as they are, for a transaction may start
    again."""
    stored = read_slots(project_id, added)
    figures = dict(added)
    for slot, (_, counts) in stored.items():
        add(counts, added[slot])
        figures[slot] = counts
    store_slots(project_id, {slot: row[0] for slot, row in stored.items()}, figures)


def _of_every_width(places: Iterable[tuple[Place, Counts]]) -> dict[Slot, Counts]:
    slots: dict[Slot, Counts] = {}
    for (quarter, marginal, key), counts in places:
        text = key_text(key)
        for width in Width:
            slot = Slot(marginal.value, width.value, period_of(width, quarter), text)
            add(slots.setdefault(slot, {}), counts)
    return slots
