"""What the log says of a database that does not respond: a fault that a client meets, or not."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, OperationalError, ProgrammingError

from helmdash.api.handlers import problem_of
from helmdash.doors.problems import Code
from helmdash.operations.database.replica import reading_elsewhere


@pytest.mark.parametrize(
    ("is_on_replica", "level", "has_trace"),
    # What failed on the replica is asked of the primary: the client hears of neither.
    [(True, "WARNING", False), (False, "ERROR", True)],
)
def test_only_a_fault_that_a_client_meets_is_an_error(
    caplog: pytest.LogCaptureFixture, is_on_replica: bool, level: str, has_trace: bool
) -> None:
    with reading_elsewhere(lambda: is_on_replica) as reading:
        reading.decide()
        problem = problem_of(OperationalError("at host.test"))

    (record,) = caplog.records
    assert (record.levelname, record.exc_info is not None) == (level, has_trace)
    assert "host.test" not in record.getMessage() + problem.detail


@pytest.mark.parametrize("kind", [DatabaseError, ProgrammingError])
def test_whatever_the_replica_refuses_is_asked_of_the_primary(
    caplog: pytest.LogCaptureFixture, kind: type[DatabaseError]
) -> None:
    """The role that reads there may lack a right, of which the primary's knows nothing."""
    with reading_elsewhere(lambda: True) as reading:
        reading.decide()
        there = problem_of(kind("permission denied"))
    here = problem_of(kind("syntax error"))

    assert (there.code, here.code) == (Code.UNAVAILABLE, Code.INTERNAL)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
