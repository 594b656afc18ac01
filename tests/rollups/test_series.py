"""Bars over time: every call of the range in one, whether it is folded or waits."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.core.rollups.figures import Marginal
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.rollups.rebuilding import rebuild
from helmdash.queries.access import ProjectInfo
from helmdash.queries.series import MOST_BARS, Only, Series, Split, series
from helmdash.records.models import RollupState
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

_GPT = Only(marginal=Marginal.MODEL, words=("openai/gpt-4o",))


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def _series(project: ProjectInfo, hours: float | None, **over: Any) -> Series:
    given: dict[str, Any] = {
        "project_id": project.id,
        "since": None if hours is None else NOW - timedelta(hours=hours),
        "until": None,
        "now": NOW,
        "split": Split.FINISH_REASON,
    }
    return series(**{**given, **over})


def _fill(project: ProjectInfo, *ages: float) -> None:
    for number, hours in enumerate(ages):
        record(
            project,
            make_capture(
                conversation=None,
                started_at=NOW - timedelta(hours=hours),
                model="acme/tiny" if number % 3 == 0 else "openai/gpt-4o",
                finish_reason="length" if number % 2 else "stop",
            ),
        )


@pytest.mark.parametrize("is_folded", [True, False])
@pytest.mark.parametrize("hours", [1, 20, 100, 2_000, None])
@pytest.mark.parametrize("only", [None, _GPT, Only(marginal=Marginal.MODEL, words=())])
def test_bars_hold_the_calls_that_started_in_them(
    project: ProjectInfo, hours: float | None, only: Only | None, is_folded: bool
) -> None:
    ages = (0, 0.2, 0.6, 5, 19, 30, 99, 1_000, 20_000)
    _fill(project, *ages)
    if is_folded:
        fold_all()

    found = _series(project, hours, only=only)

    mine = [n for n in range(len(ages)) if only is None or (only.words and n % 3)]
    assert len(found.bars) <= MOST_BARS
    assert all(before.until == after.since for before, after in pairwise(found.bars))
    for bar in found.bars:
        held = [n for n in mine if bar.since <= NOW - timedelta(hours=ages[n]) < bar.until]
        reasons = Counter("length" if n % 2 else "stop" for n in held)
        assert (bar.calls, bar.parts) == (len(held), reasons)
    assert hours is not None or sum(bar.calls or 0 for bar in found.bars) == len(mine)


def test_a_range_with_nothing_in_it_has_no_bars(project: ProjectInfo) -> None:
    assert _series(project, None).bars == ()
    assert _series(project, 1, until=NOW - timedelta(hours=2)).bars == ()


def test_what_is_not_counted_yet_is_unknown_and_not_zero(project: ProjectInfo) -> None:
    _fill(project, 0, 1, 50)
    RollupState.objects.create(project_id=project.id, is_complete=False)

    assert {bar.calls for bar in _series(project, 1).bars} == {None}

    day = timedelta(days=1)

    def stop(done: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        rebuild(actor=SHELL, project_id=project.id, progress=stop)
    found = _series(project, 60).bars
    known = [bar for bar in found if bar.since >= NOW.replace(hour=0, minute=0, second=0)]
    assert {bar.calls is None for bar in found if bar not in known} == {True}
    assert sum(bar.calls or 0 for bar in known) == 2
    assert known[-1].until - known[0].since < day

    rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None)

    assert _series(project, 60).is_whole


def test_bars_take_two_queries_and_the_first_call_two_more(project: ProjectInfo) -> None:
    _fill(project, 0, 3)

    for hours, queries in ((20, 2), (None, 4)):
        with CaptureQueriesContext(connection) as asked:
            _series(project, hours)
        assert len(asked) == queries
