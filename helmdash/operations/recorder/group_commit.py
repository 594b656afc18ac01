"""Storing what waits: one transaction for the calls of a project, and the faulty one found.

An error is the database's (it is unavailable, or full: try again later) or the data's (this call
cannot be stored, however often it is tried).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    OperationalError,
    connection,
)
from django.db.utils import InterfaceError, NotSupportedError, ProgrammingError

from helmdash.core.budgets.budget_table import MissingFallback
from helmdash.operations import ledger
from helmdash.operations.recorder.capture_json import bare_capture
from helmdash.operations.recorder.files.units import Outcome, Unit, stored
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.ledger import ProcessLedger
from helmdash.records.models import Project
from helmdash.records.statements.bulk import is_sent_together

logger = logging.getLogger(__name__)


class NoSuchProject(Exception):
    """The project of a spooled call was deleted meanwhile."""


class Elsewhere(Exception):
    """An error that the writer process met, of which only the reason came here."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"in the writer process: {reason}")
        self.reason = reason


class RefusedElsewhere(Elsewhere):
    """The data's fault."""


class UnavailableElsewhere(Elsewhere, OperationalError):
    """The database's fault."""


def groups(units: Sequence[Unit]) -> list[list[Unit]]:
    """The units of each project, in their order; each group is one transaction. Units without a
    project are left out."""
    found: dict[ProjectInfo, list[Unit]] = {}
    for unit in units:
        if unit.project is not None:
            found.setdefault(unit.project, []).append(unit)
    return list(found.values())


def store(
    units: Sequence[Unit], *, now: datetime, book: Callable[[Sequence[Outcome]], None]
) -> Iterator[list[Outcome]]:
    """Store units of one project; gives outcomes as soon as they are final.

    book: writes what will be stored into the ledger, in the transaction that stores it. What is
    refused is stored by none and is not booked here.

    Raises what the database raises when it is unavailable; what was not given back yet is not
    stored.
    """
    project = units[0].project
    if project is None:
        raise ValueError("the project of these calls was not looked up")
    try:
        answers = record_calls(
            project=project,
            captures=[capture for unit in units for capture in unit.captures],
            caller="",
            now=now,
            also=lambda answers: book(list(_dealt(units, answers))),
        )
    except Exception as error:
        if is_unavailable(error):
            raise
        if len(units) == 1 and not _made_bare(units[0], error):
            yield [Outcome(units[0], fault=error)]
            return
    else:
        yield list(_dealt(units, answers))
        return
    half = len(units) // 2
    if half:
        yield from store(units[:half], now=now, book=book)
    yield from store(units[half:], now=now, book=book)


def is_unavailable(error: BaseException) -> bool:
    """True when trying again later may help; False when it is the data's fault."""
    if isinstance(error, MissingFallback | UnavailableElsewhere):
        # No call at all can be judged until somebody puts the row back.
        return True
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    if isinstance(error, DataError | IntegrityError | NotSupportedError):
        return False
    if connection.vendor == "sqlite":
        # What its driver says of a value that it cannot bind.
        return not isinstance(error, InterfaceError | ProgrammingError)
    state = getattr(error.__cause__, "sqlstate", None)
    if isinstance(error, ProgrammingError):
        # From the server: a table is missing. From the driver: a value it cannot adapt.
        return state is not None
    # Class 54: a value is too large for an index or for jsonb.
    return not (state or "").startswith("54")


def reason(error: BaseException) -> str:
    """What to say of an error where its own words may hold the call's contents."""
    if isinstance(error, Elsewhere):
        return error.reason
    state = getattr(error.__cause__, "sqlstate", None)
    return type(error).__name__ + (f" {state}" if state else "")


def resolve(units: Sequence[Unit]) -> list[Unit]:
    """Give units from a spool their projects; returns those whose project is gone."""
    wanted = {unit.project_id for unit in units if unit.project is None}
    if not wanted:
        return []
    found = {row.pk: project_info(row) for row in Project.objects.filter(pk__in=wanted)}
    for unit in units:
        unit.project = unit.project or found.get(unit.project_id)
    return [unit for unit in units if unit.project is None]


def book(row: ProcessLedger) -> None:
    """Write a row of the ledger, in the caller's transaction."""
    if is_sent_together():
        # A fault that shows here may be that of a call, sent before.
        ledger.write(row)
        return
    try:
        # No call is to be refused for a fault of the ledger.
        ledger.write(row)
    except Exception as error:
        if is_unavailable(error):
            raise
        logger.exception("the recorder's ledger cannot be written")


def _made_bare(unit: Unit, error: Exception) -> bool:
    """Leave only the figures of a call of the gateway, whose client has its answer already.

    False: that was done before, or somebody waits for the report and is told what is wrong.
    """
    if unit.is_bare or unit.answers is not None:
        return False
    logger.warning("a call is stored without its texts: %s", reason(error))
    unit.is_bare = True
    unit.body = None
    why = f"the database refused it ({reason(error)})"
    unit.captures = tuple(bare_capture(capture, why=why) for capture in unit.captures)
    return True


def _dealt(units: Sequence[Unit], answers: Sequence[Recorded]) -> Iterator[Outcome]:
    start = 0
    for unit in units:
        end = start + len(unit.captures)
        yield stored(unit, tuple(answers[start:end]))
        start = end
