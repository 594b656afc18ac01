"""What `/metrics` tells: every name that Prometheus reads of HelmDash is in this file.

Below doors and faces, so that each of them may count: declare a counter here, and call it where the
event is seen. Such a counter is this process's own and begins with it. What the recorder did is
told by its ledger instead, which all processes share.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from helmdash.core.access.wrong_addresses import Dialect
from helmdash.operations.recorder import RecorderState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting

# When a counter began tells nothing that the start of the process does not.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it returns nothing, unsaid
_process = CollectorRegistry()
ProcessCollector(registry=_process)
PlatformCollector(registry=_process)

unknown_addresses = Counter(
    "helmdash_unknown_address_requests",
    "Requests of programs for addresses that are not there, since this process began, by "
    "the format they were answered in.",
    labelnames=["format"],
    registry=_process,
)
for _dialect in Dialect:
    unknown_addresses.labels(_dialect.value)  # told as 0 before the first one

_OUTCOMES = ("accepted", "stored", "duplicate", "rejected", "spooled", "dropped")


def exposition(
    counts: LedgerCounts,
    *,
    state: RecorderState,
    is_database_available: bool,
    waiting: Waiting | None,
) -> bytes:
    """Everything in Prometheus' text format.

    counts: of all processes together. state: what this process's recorder does now. waiting: for
    the rollups; None: not known.
    """
    recorder = CollectorRegistry()
    recorder.register(_RecorderCollector(counts, state, is_database_available))
    if waiting is not None:
        recorder.register(_RollupsCollector(waiting))
    return generate_latest(recorder) + generate_latest(_process)


class _RollupsCollector(Collector):
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def describe(self) -> Iterator[Metric]:
        """Nothing, as below."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for name, says, value in (
            ("calls", "Calls that are stored and not in the rollups yet.", self._waiting.calls),
            ("seconds", "Since the oldest of these was stored.", self._waiting.age_s),
            (
                "projects",
                "Projects with calls from before there were rollups left to count.",
                self._waiting.projects,
            ),
        ):
            yield GaugeMetricFamily(f"helmdash_rollups_waiting_{name}", says, value=value)


class _RecorderCollector(Collector):
    def __init__(
        self, counts: LedgerCounts, state: RecorderState, is_database_available: bool
    ) -> None:
        self._counts = counts
        self._state = state
        self._is_database_available = is_database_available

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry need not know the names before it collects."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        calls = CounterMetricFamily(
            "helmdash_recorder_calls", "Calls, by what became of them.", labels=["outcome"]
        )
        for outcome in _OUTCOMES:
            calls.add_metric([outcome], getattr(counts, outcome))
        yield calls
        yield CounterMetricFamily(
            "helmdash_recorder_in_flight_lost",
            "Calls that were under way when a process crashed.",
            value=counts.in_flight_lost,
        )
        yield CounterMetricFamily(
            "helmdash_recorder_bare_calls",
            "Calls stored without their texts, which no database took; among the stored.",
            value=counts.bare,
        )
        yield CounterMetricFamily(
            "helmdash_recorder_damaged_lines",
            "Lines of the spool that could not be read and were put aside; no calls.",
            value=counts.damaged_lines,
        )
        yield GaugeMetricFamily(
            "helmdash_recorder_waiting", "Calls not stored yet.", value=counts.waiting
        )
        yield GaugeMetricFamily(
            "helmdash_recorder_spool_bytes",
            "Bytes of calls on disk that wait to be stored.",
            value=counts.spool_bytes,
        )
        yield GaugeMetricFamily(
            "helmdash_database_available",
            "1 where the database answered; 0: the numbers of other processes are the last known.",
            value=float(self._is_database_available),
        )
        states = GaugeMetricFamily(
            "helmdash_recorder_state", "1 for what this process does now.", labels=["state"]
        )
        for each in RecorderState:
            states.add_metric([each.value], each is self._state)
        yield states
