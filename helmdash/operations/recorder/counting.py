"""The recorder's counts, and what becomes of them by the outcomes of units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from helmdash.operations.recorder.files.units import Outcome
from helmdash.operations.recorder.terms import Counts
from helmdash.queries.ledger import LedgerCounts


def counted(counts: Counts, after: Sequence[Outcome], *, spool_bytes: int) -> LedgerCounts:
    """These numbers as they will be with some outcomes, as the ledger has them."""
    found = replace(counts)
    count(found, after)
    return LedgerCounts(
        accepted=found.accepted,
        stored=found.stored,
        duplicate=found.duplicate,
        rejected=found.rejected,
        spooled=found.spooled,
        dropped=found.dropped,
        in_flight_lost=found.in_flight_lost,
        bare=found.bare,
        damaged_lines=found.damaged_lines,
        waiting=found.waiting,
        spool_bytes=spool_bytes,
    )


def count(counts: Counts, outcomes: Sequence[Outcome]) -> None:
    """Add what became of units; reports are accepted only now."""
    for outcome in outcomes:
        number = len(outcome.unit.captures)
        repeats = outcome.repeats
        if outcome.unit.answers is not None:
            counts.accepted += number
        if outcome.unit.is_in_doubt:
            # It is known because we stored it, and did not hear of that.
            unheard = min(repeats, counts.unheard)
            counts.unheard -= unheard
            repeats -= unheard
        if outcome.unit.is_adopted:
            # Stored by the process that was killed before it could note so; its row, written in
            # the same transaction, counts it.
            counts.accepted -= repeats
        else:
            counts.duplicate += repeats
        if outcome.fault is None:
            counts.stored += number - repeats
            counts.bare += number - repeats if outcome.unit.is_bare else 0
        else:
            counts.rejected += number
