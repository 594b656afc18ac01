"""What Prometheus reads: the names that dashboards and alerts rest on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from helmdash.core.access.wrong_addresses import Dialect
from helmdash.metrics import exposition, unknown_addresses
from helmdash.operations.database.replica import ReplicaState
from helmdash.operations.recorder import RecorderState
from helmdash.queries.jobs import JobState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting
from tests.factories import NOW

_NEW = JobState(
    name="new",
    holder="",
    is_running=False,
    started_at=None,
    ended_at=None,
    due_at=None,
    outcome="",
    told="",
    failures=0,
    now=NOW,
)
_RAN: dict[str, Any] = {
    "started_at": NOW - timedelta(seconds=120),
    "due_at": NOW - timedelta(seconds=30),
}
_ENDED: dict[str, Any] = {
    "ended_at": NOW - timedelta(seconds=60),
    "outcome": "failed",
    "failures": 2,
}
JOBS = {
    "new": _NEW,
    "late": replace(_NEW, name="late", **_RAN, **_ENDED),
    "running": replace(_NEW, name="running", **_RAN, is_running=True),
}


def test_every_name_that_dashboards_rest_on_is_told_from_the_start() -> None:
    told = _told()

    assert {name for name, _ in told if name.startswith("helmdash_")} == {
        "helmdash_recorder_calls_total",
        "helmdash_recorder_in_flight_lost_total",
        "helmdash_recorder_bare_calls_total",
        "helmdash_recorder_damaged_lines_total",
        "helmdash_recorder_waiting",
        "helmdash_recorder_spool_bytes",
        "helmdash_recorder_state",
        "helmdash_rollups_waiting_calls",
        "helmdash_rollups_waiting_seconds",
        "helmdash_rollups_waiting_projects",
        "helmdash_job_failures",
        "helmdash_job_last_duration_seconds",
        "helmdash_job_last_start_timestamp_seconds",
        "helmdash_job_overdue_seconds",
        "helmdash_replica_requests_total",
        "helmdash_replica_usable",
        "helmdash_database_available",
        "helmdash_unknown_address_requests_total",
        "helmdash_limited_requests_total",
        "helmdash_otlp_records_total",
    }
    assert {label for name, label in told if "unknown" in name} == {d.value for d in Dialect}


def test_what_waits_for_the_rollups_is_told() -> None:
    told = _told()

    names = ("calls", "seconds", "projects")
    assert [told[f"helmdash_rollups_waiting_{name}", None] for name in names] == [7, 1.5, 1]


def test_of_a_job_is_told_what_is_known() -> None:
    told = _told()

    names = ("failures", "last_start_timestamp_seconds", "last_duration_seconds", "overdue_seconds")
    found = {job: [told.get((f"helmdash_job_{name}", job)) for name in names] for job in JOBS}
    assert found == {
        "new": [0, None, None, None],
        "late": [2, NOW.timestamp() - 120, 60, 30],
        "running": [0, NOW.timestamp() - 120, None, 0],
    }


def test_where_requests_were_read_is_told() -> None:
    told = _told()

    outcomes = ("replica", "primary", "failed")
    counts = [told["helmdash_replica_requests_total", each] for each in outcomes]
    assert (told["helmdash_replica_usable", None], counts) == (0, [5, 2, 1])


def test_a_door_counts_by_one_call() -> None:
    before = _told()["helmdash_unknown_address_requests_total", "openai"]

    unknown_addresses.labels("openai").inc()

    assert _told()["helmdash_unknown_address_requests_total", "openai"] == before + 1


def _told() -> dict[tuple[str, str | None], float]:
    text = exposition(
        LedgerCounts(),
        state=RecorderState.STORING,
        is_database_available=True,
        waiting=Waiting(calls=7, transactions=2, age_s=1.5, projects=1),
        jobs=list(JOBS.values()),
        replica=ReplicaState(problem="it is away", from_replica=5, from_primary=2, failed=1),
    )
    return {
        (sample.name, next(iter(sample.labels.values()), None)): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
