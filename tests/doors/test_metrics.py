"""What Prometheus reads: the names that dashboards and alerts rest on."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from helmdash.core.access.wrong_addresses import Dialect
from helmdash.metrics import exposition, unknown_addresses
from helmdash.operations.recorder import RecorderState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting


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
        "helmdash_database_available",
        "helmdash_unknown_address_requests_total",
    }
    assert {label for name, label in told if "unknown" in name} == {d.value for d in Dialect}


def test_what_waits_for_the_rollups_is_told() -> None:
    told = _told()

    names = ("calls", "seconds", "projects")
    assert [told[f"helmdash_rollups_waiting_{name}", None] for name in names] == [7, 1.5, 1]


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
    )
    return {
        (sample.name, next(iter(sample.labels.values()), None)): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
