"""`GET /metrics`: the recorder's ledger and the process, as Prometheus reads them.

Wants a key with `read`, like everything that tells what went on (decisions.md "API"), unless
HELMDASH_METRICS_OPEN says otherwise.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from functools import partial

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from helmdash import conf
from helmdash.api.auth import Needs, keys_of
from helmdash.api.handlers import problem_of
from helmdash.api.problems import Problem, problem_response
from helmdash.core.wrong_addresses import Dialect
from helmdash.doors import knocks
from helmdash.operations.patience import ask_briefly
from helmdash.operations.recorder import RecorderState, recorder
from helmdash.queries import ledger
from helmdash.queries.ledger import LedgerCounts

_may_read = Needs("read")
# The answer is to be here within a second, also where the database says nothing.
_PATIENCE_SECONDS = 0.7
_OUTCOMES = ("accepted", "stored", "duplicate", "rejected", "spooled", "dropped")


class RecorderCollector(Collector):
    """The ledger of all processes, and what this one does now."""

    def __init__(self, counts: LedgerCounts, *, is_database_there: bool) -> None:
        self._counts = counts
        self._is_database_there = is_database_there

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry need not know the names before it collects."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The families."""
        counts = self._counts
        calls = CounterMetricFamily(
            "helmdash_recorder_calls", "Calls, by what became of them.", labels=["outcome"]
        )
        for outcome in _OUTCOMES:
            calls.add_metric([outcome], getattr(counts, outcome))
        yield calls
        yield CounterMetricFamily(
            "helmdash_recorder_in_flight_lost",
            "Calls that were under way when a process ended by force.",
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
            value=float(self._is_database_there),
        )
        unknown = CounterMetricFamily(
            "helmdash_unknown_address_requests",
            "Requests of programs for addresses that are not there, since this process began, by "
            "the format they were answered in.",
            labels=["format"],
        )
        for dialect in Dialect:
            unknown.add_metric([dialect.value], knocks.counts[dialect])
        yield unknown
        state = GaugeMetricFamily(
            "helmdash_recorder_state", "1 for what this process does now.", labels=["state"]
        )
        now = recorder().state()
        for each in RecorderState:
            state.add_metric([each.value], each is now)
        yield state


class KnownKeys:
    """Keys that were good lately, by their hashes: so that scraping goes on in an outage.

    Holds at most `most`; a key that the database refuses is forgotten at once.
    """

    def __init__(self, *, seconds: float = 3600.0, most: int = 100) -> None:
        self._seconds = seconds
        self._most = most
        self._seen: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def note(self, keys: tuple[str, ...], *, is_good: bool) -> None:
        """What the database said of the keys of a request just now."""
        mark = _hash(keys)
        with self._lock:
            self._seen.pop(mark, None)
            if is_good:
                self._seen[mark] = time.monotonic()
                if len(self._seen) > self._most:
                    del self._seen[next(iter(self._seen))]

    def knows(self, keys: tuple[str, ...]) -> bool:
        """The keys were good within the last hour."""
        with self._lock:
            seen_at = self._seen.get(_hash(keys))
        return seen_at is not None and time.monotonic() - seen_at < self._seconds


_known_keys = KnownKeys()
_process = CollectorRegistry()
ProcessCollector(registry=_process)
PlatformCollector(registry=_process)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything, as text; also while the database is away, within about a second.

    Then the numbers of this process are those of this moment, and those of the others the last
    that were known; a key is good that was good within the last hour.
    """
    is_there = True
    try:
        others = ask_briefly(partial(_ask_database, request), seconds=_PATIENCE_SECONDS)
    except (DatabaseError, InterfaceError) as error:
        if not _is_known(request):
            return problem_response(request, problem_of(error))
        others, is_there = ledger.latest_others(recorder().name), False
    except Exception as error:
        return problem_response(request, problem_of(error))
    registry = CollectorRegistry()
    counts = others + recorder().standing().counts
    registry.register(RecorderCollector(counts, is_database_there=is_there))
    response = HttpResponse(
        generate_latest(registry) + generate_latest(_process), content_type=CONTENT_TYPE_LATEST
    )
    response["Cache-Control"] = "no-store"
    return response


def _ask_database(request: HttpRequest) -> LedgerCounts:
    """All processes but this one. Raises the Problem, or what the database raises."""
    if not conf.env().metrics_open:
        keys = keys_of(request)
        try:
            _may_read(request)
        except Problem:
            if keys:
                _known_keys.note(keys, is_good=False)
            raise
        if keys:
            _known_keys.note(keys, is_good=True)
    return ledger.others(recorder().name)


def _is_known(request: HttpRequest) -> bool:
    """Whoever asks may know, as far as memory tells."""
    if conf.env().metrics_open:
        return True
    keys = keys_of(request)
    return bool(keys) and _known_keys.knows(keys)


def _hash(keys: tuple[str, ...]) -> bytes:
    return hashlib.sha256("\n".join(keys).encode(errors="surrogateescape")).digest()
