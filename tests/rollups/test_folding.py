"""A fold reckons before it writes, and adds what it has reckoned once."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import pytest
from django.db import connection

from helmdash.core.rollups.figures import Change, Counts, Marginal, Place, tally
from helmdash.core.rollups.periods import Width
from helmdash.operations.database.transactions import Collision, write
from helmdash.operations.rollups import folding
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Rollup, UncountedCalls
from tests.factories import make_capture, make_project, record

_CALLS = 5


def waiting_calls() -> ProjectInfo:
    project = make_project()
    record(*(make_capture(id=f"call-{number}") for number in range(_CALLS)))
    return project


def counted(project: ProjectInfo) -> list[int]:
    """The calls that each row of the widest width has of all calls; none before the first fold."""
    rows = Rollup.objects.filter(
        project_id=project.id, marginal=Marginal.ALL.value, width=Width.MONTH.value
    )
    return [orjson.loads(row.figures)["n"] for row in rows]


@pytest.mark.django_db
def test_rows_that_another_one_took_meanwhile_are_not_added_again() -> None:
    project = waiting_calls()
    waiting = folding._read(folding.MOST_GROUPS)

    assert folding.fold() == _CALLS
    assert write(lambda: folding._fold(waiting)) == 0

    assert counted(project) == [_CALLS]
    assert not UncountedCalls.objects.exists()


@pytest.mark.django_db
def test_who_finds_rows_gone_adds_what_waits_by_then() -> None:
    project = waiting_calls()
    waiting = folding._read(folding.MOST_GROUPS)
    folding.fold()
    record(make_capture(id="later"))

    assert write(lambda: folding._fold(waiting)) == 1

    assert counted(project) == [_CALLS + 1]


@pytest.mark.django_db
def test_a_transaction_that_starts_again_adds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project = waiting_calls()
    folding.fold()
    record(make_capture(id="later"))
    add_levels, tries = folding._add_levels, []

    def collide_first(*told: object) -> None:
        tries.append(told)
        if len(tries) == 1:
            raise Collision
        add_levels(*told)  # type: ignore[arg-type]

    monkeypatch.setattr(folding, "_add_levels", collide_first)

    assert folding.fold() == 1

    assert len(tries) == 2
    assert counted(project) == [_CALLS + 1]


@pytest.mark.django_db(transaction=True)
def test_nobody_who_records_waits_for_the_reckoning(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's one writer is free until there are rows to write."""
    waiting_calls()
    inside: list[bool] = []

    def note(changes: Iterable[Change]) -> dict[Place, Counts]:
        inside.append(connection.in_atomic_block)
        return tally(changes)

    monkeypatch.setattr(folding, "tally", note)

    assert folding.fold() == _CALLS

    assert inside == [False]
