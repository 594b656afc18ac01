"""What `/metrics` tells: every name that Prometheus reads of HelmDash is in this file,
but those of recorded calls (helmdash.usage_metrics).

Below doors and faces, so that each of them may count: declare a counter here, and call it where the
event is seen. Such a counter is this process's own and begins with it. What the recorder did is
told by its ledger instead, which all processes share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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
from helmdash.operations.database.replica import ReplicaState
from helmdash.operations.recorder import RecorderState
from helmdash.queries.exporting import ExportState
from helmdash.queries.jobs import JobState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting
from helmdash.queries.usage_totals import UsageTotals
from helmdash.usage_metrics import of_exports, of_usage

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

telemetry_records = Counter(
    "helmdash_otlp_records",
    "Records that came by OTLP since this process began, by signal and what they became: call, "
    "other (around calls, or a second telling of one), rejected; of metrics the data points.",
    labelnames=["signal", "became"],
    registry=_process,
)

for _signal in ("traces", "logs", "metrics"):
    for _became in ("call", "other", "rejected"):
        telemetry_records.labels(_signal, _became)

limited_requests = Counter(
    "helmdash_limited_requests",
    "Requests answered with 429 since this process began, by the limit: of a key's requests in a "
    "second, of an address's wrong_keys or wrong_passwords.",
    labelnames=["limit"],
    registry=_process,
)
for _limit in ("requests", "wrong_keys", "wrong_passwords"):
    limited_requests.labels(_limit)

_OUTCOMES = ("accepted", "stored", "duplicate", "rejected", "spooled", "dropped")


def exposition(
    counts: LedgerCounts,
    *,
    state: RecorderState,
    is_database_available: bool,
    waiting: Waiting | None,
    jobs: Sequence[JobState] = (),
    replica: ReplicaState | None = None,
    usage: UsageTotals | None = None,
    exports: Sequence[ExportState] = (),
    ages: Mapping[str, float] | None = None,
    stuck_files: int | None = None,
) -> bytes:
    """Everything in Prometheus' text format.

    counts: of all processes together. state: what this process's recorder does now. waiting: for
    the rollups; None: not known. jobs: as far as they are known. replica: None where there is none.
    usage: of recorded calls; None: not known. ages: of each exporter's oldest call, in seconds.
    stuck_files: of the spool, by the processes that left them; None: the disk does not say.
    """
    shared = CollectorRegistry()
    shared.register(_RecorderCollector(counts, state, is_database_available))
    if stuck_files is not None:
        shared.register(_Told(lambda: _of_stuck_files(stuck_files)))
    if waiting is not None:
        shared.register(_Told(lambda: _of_rollups(waiting)))
    shared.register(_Told(lambda: _of_jobs(jobs)))
    if replica is not None:
        shared.register(_Told(lambda: _of_replica(replica)))
    if usage is not None:
        shared.register(_Told(lambda: of_usage(usage)))
    if exports:
        shared.register(_Told(lambda: of_exports(exports, ages or {})))
    return generate_latest(shared) + generate_latest(_process)


class _Told(Collector):
    """What a function tells."""

    def __init__(self, tell: Callable[[], Iterator[Metric]]) -> None:
        self._tell = tell

    def describe(self) -> Iterator[Metric]:
        """Nothing, as below."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        return self._tell()


def _of_stuck_files(owners: int) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "helmdash_recorder_stuck_files",
        "Processes of this host that ended and left files in the spool that cannot be read.",
        value=owners,
    )


def _of_rollups(waiting: Waiting) -> Iterator[Metric]:
    for name, says, value in (
        ("calls", "Calls that are stored and not in the rollups yet.", waiting.calls),
        ("seconds", "Since the oldest of these was stored.", waiting.age_s),
        (
            "projects",
            "Projects with calls from before there were rollups left to count.",
            waiting.projects,
        ),
    ):
        yield GaugeMetricFamily(f"helmdash_rollups_waiting_{name}", says, value=value)


def _of_jobs(jobs: Sequence[JobState]) -> Iterator[Metric]:
    """Of each job what is known: one that has never run has no last run."""
    for name, says, value_of in _JOB_GAUGES:
        gauge = GaugeMetricFamily(f"helmdash_job_{name}", says, labels=["job"])
        for job in jobs:
            if (value := value_of(job)) is not None:
                gauge.add_metric([job.name], value)
        yield gauge


_JOB_GAUGES: tuple[tuple[str, str, Callable[[JobState], float | None]], ...] = (
    (
        "last_start_timestamp_seconds",
        "When a process took the job last, by the database's clock.",
        lambda job: job.started_at.timestamp() if job.started_at else None,
    ),
    (
        "last_duration_seconds",
        "How long its last run took; none while it runs, or where that was broken off.",
        lambda job: job.took.total_seconds() if job.took is not None else None,
    ),
    ("failures", "Runs that failed in a row; 0 after a success.", lambda job: job.failures),
    (
        "overdue_seconds",
        "Since it was due, while nobody is at it; none for a job that has no time.",
        lambda job: job.overdue.total_seconds() if job.overdue is not None else None,
    ),
)


def _of_replica(replica: ReplicaState) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "helmdash_replica_usable",
        "1 where this process read from the replica when it was asked last.",
        value=float(not replica.problem),
    )
    requests = CounterMetricFamily(
        "helmdash_replica_requests",
        "Requests to this process that read what was recorded: from the replica, from the "
        "primary instead; and those that failed on the replica and were done again.",
        labels=["outcome"],
    )
    requests.add_metric(["replica"], replica.from_replica)
    requests.add_metric(["primary"], replica.from_primary)
    requests.add_metric(["failed"], replica.failed)
    yield requests


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
            "1 where the database answered and took what was written last; 0: calls wait, and "
            "the numbers of other processes may be the last that were known.",
            value=float(self._is_database_available),
        )
        states = GaugeMetricFamily(
            "helmdash_recorder_state", "1 for what this process does now.", labels=["state"]
        )
        for each in RecorderState:
            states.add_metric([each.value], each is self._state)
        yield states
