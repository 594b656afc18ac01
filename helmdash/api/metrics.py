"""`GET /metrics`: who may read it, and for how long the database is waited for.

Wants a key with `read`, like everything that tells what went on, unless
HELMDASH_METRICS_OPEN says otherwise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from helmdash import conf
from helmdash.api.auth import Needs, keys_of
from helmdash.api.handlers import problem_of
from helmdash.api.problems import problem_response
from helmdash.core.access.permissions import Right, Scope, may
from helmdash.doors.limits import key_limits
from helmdash.metrics import exposition
from helmdash.operations.database.replica import replica
from helmdash.operations.database.timeouts import with_timeout
from helmdash.operations.recorder import recorder
from helmdash.queries import jobs, ledger, rollups
from helmdash.queries.exporting import ExportState, export_states
from helmdash.queries.jobs import JobState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting
from helmdash.queries.usage_totals import UsageTotals, usage_totals

_may_read = Needs(Scope.READ)
# The answer is to be here within a second, also where the database says nothing.
_PATIENCE_SECONDS = 0.7
# In an outage, for keys that were good within so long; the gateway serves them as long.
_KNOWN_SECONDS = 3600.0
# As often as scrapers ask.
_USAGE_SECONDS = 10.0


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything, as text; also while the database is away, within about a second.

    Then the numbers of this process are those of this moment, and those of the others the last
    that were known; a key is good that was good within the last hour.
    """
    is_there = True
    waiting: Waiting | None = None
    states: tuple[JobState, ...] = ()
    exports: tuple[ExportState, ...] = ()
    whose: int | None = None
    try:
        others, waiting, states, exports, whose = with_timeout(
            partial(_ask_database, request), seconds=_PATIENCE_SECONDS
        )
    except (DatabaseError, InterfaceError) as error:
        if not _is_known(request):
            return problem_response(request, problem_of(error))
        others, is_there = ledger.latest_others(recorder().name), False
    except Exception as error:
        return problem_response(request, problem_of(error))
    own, beside = recorder(), replica()
    stuck = own.stuck_files()
    told = exposition(
        others + own.own_ledger().counts,
        state=own.state(),
        # A full disk answers and takes nothing.
        is_database_available=is_there and own.is_writing,
        waiting=waiting,
        jobs=states,
        replica=beside.state() if beside is not None else None,
        usage=known_usage.told(whose) if is_there else None,
        exports=exports,
        ages={each.name: each.lag_s(timezone.now()) for each in exports},
        stuck_files=len(stuck) if stuck is not None else None,
    )
    response = HttpResponse(told, content_type=CONTENT_TYPE_LATEST)
    response["Cache-Control"] = "no-store"
    return response


def _ask_database(
    request: HttpRequest,
) -> tuple[LedgerCounts, Waiting, tuple[JobState, ...], tuple[ExportState, ...], int | None]:
    """All processes but this one, what waits for the rollups, the jobs, the exporters, and whose
    calls may be told: a project's, or (None) all where no key is wanted. Of the exporters only
    those that whoever asks may know of.

    Raises the Problem, or what the database raises.
    """
    whose: int | None = None
    reader: int | None = None
    if not conf.env().metrics_open:
        caller = _may_read(request)
        whose = caller.project.id
        is_for_all = may(caller.actor, Right.ADMINISTER, project_id=None)
        reader = None if is_for_all else whose
    others = ledger.others(recorder().name)
    waiting = rollups.waiting(now=timezone.now())
    return others, waiting, jobs.jobs(), export_states(told_to=reader), whose


class KnownUsage:
    """Totals of recorded calls as this process last read them: scrapers ask often, and several."""

    def __init__(self, seconds: float = _USAGE_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._known: dict[int | None, tuple[float, UsageTotals]] = {}
        self._kept_rounds: dict[int | None, Mapping[str, int]] = {}

    def told(self, project_id: int | None) -> UsageTotals | None:
        """Of a project, or of all (None), read anew after some seconds; None where the database
        takes too long for who scrapes."""
        known = self._known.get(project_id)
        if known is not None and time.monotonic() - known[0] < self._seconds:
            return known[1]
        try:
            totals = with_timeout(
                partial(usage_totals, project_id=project_id), seconds=_PATIENCE_SECONDS
            )
        except (DatabaseError, InterfaceError):
            return known[1] if known is not None else None
        with self._lock:
            rounds = None if known is None else known[1].rounds
            kept = self._kept_rounds.get(project_id, {})
            self._kept_rounds[project_id] = totals.rounds
            if rounds is not None:
                totals = replace(totals, rounds=_never_fewer(rounds, kept, totals.rounds))
            self._known[project_id] = (time.monotonic(), totals)
        return totals

    def forget(self) -> None:
        """Know nothing: for tests."""
        with self._lock:
            self._known.clear()
            self._kept_rounds.clear()


def _never_fewer(
    told: Mapping[str, int], before: Mapping[str, int], now: Mapping[str, int]
) -> dict[str, int]:
    """What a counter tells next. Rounds go with their conversations at the end of retention, and a
    counter that falls is taken for a restart: what has gone since the scrape before counts on.

    told: at the scrape before. before, now: the rounds that were kept then, and that are now.
    """
    return {
        by: told.get(by, 0) + max(0, now.get(by, 0) - before.get(by, 0))
        for by in told.keys() | now.keys()
    }


known_usage = KnownUsage()


def _is_known(request: HttpRequest) -> bool:
    """Whoever asks may know, as far as memory tells."""
    if conf.env().metrics_open:
        return True
    caller = key_limits().known(keys_of(request), seconds=_KNOWN_SECONDS)
    return caller is not None and caller.may(Scope.READ)
