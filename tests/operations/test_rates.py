"""The rates of the first page: of the calls that told, over the range and its pieces."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.rates import MOST_PIECES, RateName, RateOverTime, rates
from helmdash.records.models import RollupState
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

HOUR = timedelta(hours=1)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def found(project: ProjectInfo, days: float = 1) -> dict[RateName, RateOverTime]:
    since = NOW - timedelta(days=days)
    told = rates(project_id=project.id, since=since, until=None, now=NOW)
    return {each.name: each for each in told.rates}


def cached(prompt: int, part: int) -> dict[str, object]:
    return {"prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": part}}


def test_each_rate_is_of_the_calls_that_told_it(project: ProjectInfo) -> None:
    cut_off = {"finish_reason": "length", "purpose": "plan", "content": '{"steps": ['}
    record(
        project,
        make_capture(started_at=NOW - 3 * HOUR, **cut_off),
        make_capture(started_at=NOW - 3 * HOUR, content=""),
        make_capture(started_at=NOW - 2 * HOUR, usage=None),
        make_capture(started_at=NOW, usage=cached(1_000, 900)),
        make_capture(started_at=NOW, usage=cached(3_000, 0)),
    )

    told = found(project)

    said = {name: (each.count, each.n, each.share) for name, each in told.items()}
    assert said == {
        RateName.TRUNCATED: (1, 5, 0.2),
        RateName.EMPTY: (1, 5, 0.2),
        RateName.CUT: (0, 5, 0.0),
        RateName.UNKNOWN: (1, 5, 0.2),
        RateName.FROM_CACHE: (None, 2, 0.225),
    }
    known = [share for share in told[RateName.UNKNOWN].shares if share is not None]
    assert known == [0.0, 1.0, 0.0]
    assert [each for each in told[RateName.FROM_CACHE].shares if each is not None] == [0.225]
    assert all(len(each.shares) <= MOST_PIECES for each in told.values())


def test_without_a_call_a_rate_is_unknown(project: ProjectInfo) -> None:
    record(project, make_capture(started_at=NOW - timedelta(days=9)))

    told = found(project)

    assert {(each.share, each.n) for each in told.values()} == {(None, 0)}
    assert {share for each in told.values() for share in each.shares} == {None}


def test_what_is_not_counted_yet_is_in_no_rate(project: ProjectInfo) -> None:
    record(project, make_capture())
    fold_all()
    RollupState.objects.update_or_create(project_id=project.id, defaults={"is_complete": False})

    told = rates(project_id=project.id, since=NOW - 2 * HOUR, until=None, now=NOW)

    assert not told.is_whole
    assert {each.share for each in told.rates} == {None}


def test_no_call_is_read_for_them(project: ProjectInfo) -> None:
    for age in (0, 1, 30, 300):
        record(project, make_capture(started_at=NOW - timedelta(days=age)))
    fold_all()

    with CaptureQueriesContext(connection) as queries:
        told = found(project, days=365)

    assert told[RateName.EMPTY].n == 4
    assert len(queries) == 2
    assert not any("records_call" in each["sql"] for each in queries)


@pytest.mark.parametrize(
    ("since", "is_wider"),
    [
        (None, False),
        (NOW.replace(hour=0, minute=0, second=0) - timedelta(days=1), False),
        (NOW - timedelta(days=1), True),  # begins within a quarter-hour
    ],
)
def test_it_is_told_where_calls_from_outside_the_range_are_counted(
    project: ProjectInfo, since: datetime | None, is_wider: bool
) -> None:
    record(project, make_capture(started_at=NOW - timedelta(days=2)), make_capture(started_at=NOW))

    told = rates(project_id=project.id, since=since, until=None, now=NOW)

    assert told.is_wider is is_wider
