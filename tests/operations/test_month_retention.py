"""Months of calls that no project keeps are dropped; what hangs on their calls goes with them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.core.rollups.figures import Marginal
from helmdash.operations.retention import retaining
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.operations.retention.months import drop_expired_months
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.rollups import figures
from helmdash.records.models import Call, CallName, CallPayload
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no partitions"
)


def told(project: ProjectInfo) -> object:
    """What the rollups say of a project's calls of all times."""
    found = figures(project_id=project.id, marginal=Marginal.ALL, since=None, until=None)
    return found and found.totals()


@pytest.fixture
def grown(db: None) -> tuple[ProjectInfo, ProjectInfo]:
    """A project that keeps calls for a month, one for ever; the one has calls of three months, the
    other of the second."""
    short = make_ruled_project(payload="full", retention_days=30)
    long = make_ruled_project(slug="long", name="Long")
    for month in (1, 2, 3):
        at = datetime(2024, month, 10, tzinfo=UTC)
        record(short, make_capture(id=f"{month}", conversation="all", started_at=at), now=at)
    at = datetime(2024, 2, 10, tzinfo=UTC)
    record(long, make_capture(id="kept", started_at=at), now=at)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    return short, long


def test_a_month_is_dropped_once_no_project_keeps_it(
    grown: tuple[ProjectInfo, ProjectInfo],
) -> None:
    short, _ = grown
    before = told(short)

    # The thirty days after January are over, those after March are not.
    dropped = drop_expired_months(actor=SHELL, now=datetime(2024, 4, 20, tzinfo=UTC))

    assert dropped == ("2024_01",)
    assert sorted(Call.objects.values_list("name", flat=True)) == ["2", "3", "kept"]
    assert CallPayload.objects.filter(project_id=short.id).count() == 2
    assert set(CallName.objects.values_list("name", flat=True)) == {"2", "3", "kept"}
    assert told(short) == before
    assert drop_expired_months(actor=SHELL, now=datetime(2024, 4, 20, tzinfo=UTC)) == ()


@pytest.mark.usefixtures("grown")
def test_a_drop_keeps_nobody_waiting() -> None:
    """It waits for others before it locks calls, and walks through none of them then."""
    with CaptureQueriesContext(connection) as asked:
        drop_expired_months(actor=SHELL, now=datetime(2024, 4, 20, tzinfo=UTC))

    told = [each["sql"] for each in asked]
    (locked,) = [at for at, each in enumerate(told) if "ACCESS EXCLUSIVE" in each]
    (dropped, *_) = [at for at, each in enumerate(told) if each.startswith("DROP TABLE")]
    held = told[locked + 1 : dropped]
    assert not any("rollupstate" in each for each in held)
    (look,) = [each for each in held if "records_call" in each]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {look.replace('2024_01', '2024_02')}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond: (project_id = p.id)" in plan, plan


@pytest.mark.usefixtures("grown")
def test_months_are_dropped_before_anything_else_is_done() -> None:
    """What is made ahead analyzes the calls of all months, for seconds where they are many."""
    with CaptureQueriesContext(connection) as asked:
        dropped = retaining.drop_months(actor=SHELL, now=datetime(2024, 4, 20, tzinfo=UTC))

    told = [each["sql"] for each in asked]
    drops = [at for at, each in enumerate(told) if each.startswith("DROP TABLE")]
    others = [at for at, each in enumerate(told) if each.startswith(("CREATE TABLE", "ANALYZE"))]
    assert dropped.months == ("2024_01",)
    assert max(drops) < min(others)


def test_a_month_that_is_read_for_long_stays_till_the_next_time(
    grown: tuple[ProjectInfo, ProjectInfo],
) -> None:
    short, _ = grown
    when = datetime(2024, 4, 20, tzinfo=UTC)
    reader = connections.create_connection(connection.alias)
    try:
        with reader.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("LOCK TABLE ONLY records_call IN ACCESS SHARE MODE")

        assert drop_expired_months(actor=SHELL, now=when) == ()
        assert Call.objects.filter(project_id=short.id).count() == 3
    finally:
        reader.close()
    assert drop_expired_months(actor=SHELL, now=when) == ("2024_01",)


def test_a_conversation_over_several_months_is_erased(
    grown: tuple[ProjectInfo, ProjectInfo],
) -> None:
    short, _ = grown

    erased = erase_conversation(actor=SHELL, project=short, conversation="all", now=NOW)

    assert erased.calls == 3
    assert list(CallName.objects.values_list("name", flat=True)) == ["kept"]
    assert not CallPayload.objects.filter(project_id=short.id).exists()
