"""How much one of many steps writes."""

from __future__ import annotations

import time

import pytest
from django.db import connection

from helmdash.operations.database.steps import STEP_SECONDS, StepSize, at_once
from helmdash.records.models import StoredMessage
from tests.factories import NOW, make_project

pytestmark = pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL has more than one writer"
)


@pytest.mark.parametrize(
    ("ms_per_row", "settles"),
    [(0.05, (300, 401)), (1.0, (20, 21)), (100.0, (20, 21)), (0.0001, (2000, 2001))],
)
def test_a_step_takes_as_many_rows_as_it_writes_in_a_moment(
    monkeypatch: pytest.MonkeyPatch, ms_per_row: float, settles: tuple[int, int]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    size = StepSize(2000)

    def work() -> int:
        nonlocal now
        now += size.rows * ms_per_row / 1000
        return size.rows

    for _ in range(20):
        size.timed(work)()

    assert settles[0] <= size.rows < settles[1]


def test_a_step_never_takes_more_than_is_asked() -> None:
    size = StepSize(3)
    assert [size.timed(lambda: size.rows)() for _ in range(5)] == [3] * 5


def test_one_quick_step_does_not_make_the_next_a_long_one() -> None:
    size = StepSize(2000)
    first = size.rows
    size.timed(lambda: None)()
    assert size.rows == 2 * first
    size.timed(lambda: time.sleep(STEP_SECONDS * 4))()
    assert size.rows <= first // 2


@pytest.mark.django_db
def test_a_step_takes_few_rows_where_each_holds_much() -> None:
    project = make_project()
    for kb in (9_000, 400, 400, 400, 0, 0):
        StoredMessage.objects.create(
            project_id=project.id,
            hash=str(StoredMessage.objects.count()),
            body={"content": "x" * kb * 1000},
            latest_seen_at=NOW,
        )
    rows = StoredMessage.objects.order_by("hash")
    taken, latest = [], 0

    while found := at_once(rows.filter(id__gt=latest), 3, bytes_of="body"):
        taken.append(len(found))
        latest = found[-1]

    assert taken == [1, 2, 3]
