"""`GET /metrics`: who may read it, and for how long the database is waited for.

Wants a key with `read`, like everything that tells what went on, unless
HELMDASH_METRICS_OPEN says otherwise.
"""

from __future__ import annotations

import hashlib
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
from helmdash.api.problems import Problem, problem_response
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

_may_read = Needs("read")
# The answer is to be here within a second, also where the database says nothing.
_PATIENCE_SECONDS = 0.7
# As often as scrapers ask.
_USAGE_SECONDS = 10.0


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
    )
    response = HttpResponse(told, content_type=CONTENT_TYPE_LATEST)
    response["Cache-Control"] = "no-store"
    return response


def _ask_database(
    request: HttpRequest,
) -> tuple[LedgerCounts, Waiting, tuple[JobState, ...], tuple[ExportState, ...], int | None]:
    """All processes but this one, what waits for the rollups, the jobs, the exporters, and whose
    calls may be told: a project's, or (None) all where no key is wanted.

    Raises the Problem, or what the database raises.
    """
    whose: int | None = None
    if not conf.env().metrics_open:
        keys = keys_of(request)
        try:
            whose = _may_read(request).project.id
        except Problem:
            if keys:
                _known_keys.note(keys, is_good=False)
            raise
        if keys:
            _known_keys.note(keys, is_good=True)
    others = ledger.others(recorder().name)
    waiting = rollups.waiting(now=timezone.now())
    return others, waiting, jobs.jobs(), export_states(), whose


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
    keys = keys_of(request)
    return bool(keys) and _known_keys.knows(keys)


def _hash(keys: tuple[str, ...]) -> bytes:
    return hashlib.sha256("\n".join(keys).encode(errors="surrogateescape")).digest()
