"""`GET /metrics`: the recorder's ledger and the process, as Prometheus reads them.

Wants a key with `read`, like everything that tells what went on (decisions.md "API"), unless
HELMDASH_METRICS_OPEN says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from helmdash.api.auth import Needs
from helmdash.api.handlers import problem_of
from helmdash.api.problems import problem_response
from helmdash.operations.recorder import RecorderState, recorder
from helmdash.queries import ledger

_may_read = Needs("read")
_OUTCOMES = ("accepted", "stored", "duplicate", "rejected", "spooled", "dropped")


class RecorderCollector(Collector):
    """The ledger of all processes; this one with its numbers of the moment.

    While the database is away only this process is told.
    """

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering asks no database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The families, made anew for each scrape."""
        own = recorder().standing()
        try:
            counts = ledger.totals(own=own)
        except (DatabaseError, InterfaceError):
            counts = own.counts
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
        yield GaugeMetricFamily(
            "helmdash_recorder_waiting", "Calls not stored yet.", value=counts.waiting
        )
        yield GaugeMetricFamily(
            "helmdash_recorder_spool_bytes",
            "Bytes of calls on disk that wait to be stored.",
            value=counts.spool_bytes,
        )
        state = GaugeMetricFamily(
            "helmdash_recorder_state", "1 for what this process does now.", labels=["state"]
        )
        now = recorder().state()
        for each in RecorderState:
            state.add_metric([each.value], each is now)
        yield state


_registry = CollectorRegistry()
ProcessCollector(registry=_registry)
PlatformCollector(registry=_registry)
_registry.register(RecorderCollector())


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything, as text."""
    if not conf.env().metrics_open:
        try:
            _may_read(request)
        except Exception as error:
            return problem_response(request, problem_of(error))
    response = HttpResponse(generate_latest(_registry), content_type=CONTENT_TYPE_LATEST)
    response["Cache-Control"] = "no-store"
    return response
