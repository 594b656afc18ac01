"""What every transaction that changes calls says of it, in the same transaction.

One row for a transaction, whatever it holds: `folding` adds the figures up later, and readers count
what still waits. A row is only ever added, so that writers do not meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from helmdash.core.rollups.figures import Change
from helmdash.core.rollups.periods import quarter_of
from helmdash.core.rollups.plan_facts import PlanFacts
from helmdash.records.models import Call, Conversation, Fit, RollupState, UncountedCalls
from helmdash.records.rollups.call_facts import dump_changes, facts_of, facts_of_row
from helmdash.records.rollups.fit_facts import fit_facts_of, fit_facts_of_row
from helmdash.records.rollups.level_counts import dump_levels
from helmdash.records.statements.direct import tell_prepared

_INSERT = (
    f"INSERT INTO {UncountedCalls._meta.db_table} (project_id, calls, changes, at, levels)"
    " VALUES (%s, %s, %s, %s, %s)"
)


def note(
    project_id: int,
    changes: Sequence[Change],
    *,
    now: datetime,
    levels: Mapping[int, int] | None = None,
) -> None:
    """Calls, fits or plans that were recorded (None, new), found to be others (old, new) or erased
    (old, None).

    One insert. Facts of stored calls are those of their rows as they are read back. levels: by how
    many more conversations, or fewer, stand at each severity after this transaction.
    """
    moved = {severity: count for severity, count in (levels or {}).items() if count}
    if not changes and not moved:
        return
    at = connection.ops.adapt_datetimefield_value(now)
    told = dump_levels(moved) if moved else None
    # What waits is added up until nothing is counted: a row is at least one.
    calls = max(len(changes), 1)
    tell_prepared(_INSERT, [project_id, calls, dump_changes(changes), at, told])


def note_recorded(
    project_id: int,
    rows: Sequence[Mapping[str, Any]],
    *,
    now: datetime,
    levels: Mapping[int, int] | None = None,
) -> None:
    """Calls that are recorded in this transaction, by the attributes of their rows."""
    note(project_id, [(None, facts_of_row(row)) for row in rows], now=now, levels=levels)


def note_deleted_conversations(
    project_id: int, conversations: QuerySet[Conversation], *, now: datetime
) -> None:
    """Conversations that this transaction is about to delete; their rows are locked."""
    gone = Counter(conversations.order_by().values_list("severity", flat=True))
    note(project_id, [], now=now, levels={each: -count for each, count in gone.items()})


def note_erased(project_id: int, calls: QuerySet[Call], *, now: datetime) -> None:
    """Calls that this transaction is about to erase; their rows are locked.

    Who erases them at the same time waits for the lock and finds none any more.
    """
    erased = facts_of(calls.select_for_update())
    note(project_id, [(facts, None) for facts in erased], now=now)


def note_fit(project_id: int, row: Mapping[str, Any], *, now: datetime) -> None:
    """A fit that is recorded in this transaction, by the attributes of its row."""
    note(project_id, [(None, fit_facts_of_row(row))], now=now)


def note_erased_fits(project_id: int, fits: QuerySet[Fit], *, now: datetime) -> None:
    """Fits that this transaction is about to erase."""
    erased = fit_facts_of(fits.select_for_update())
    note(project_id, [(facts, None) for facts in erased], now=now)


def note_plan(
    project_id: int, before: PlanFacts | None, after: PlanFacts | None, *, now: datetime
) -> None:
    """A plan that this transaction ends, ends otherwise or deletes: its facts, None while it runs
    and once it is gone. Its row is locked."""
    if before != after:
        note(project_id, [(before, after)], now=now)


def note_retained(project_id: int, before: datetime) -> None:
    """Retention deletes calls, fits and plans of before a moment, whose figures are kept.

    Remembered with the first quarter-hour that is whole: rebuilding leaves those before as they
    are. Locks the project's state, for which a rebuilding waits.
    """
    state, _ = RollupState.objects.select_for_update().get_or_create(project_id=project_id)
    first_whole = quarter_of(before) + 1
    if state.is_complete and (state.kept_from is None or state.kept_from < first_whole):
        state.kept_from = first_whole
        state.save(update_fields=["kept_from"])
