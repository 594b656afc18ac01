"""The recorder's ledger: what became of every call that was taken in, and how it goes now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash import conf
from helmdash.core.budgets.levels import Level
from helmdash.operations.database.replica import replica
from helmdash.operations.jobs import asking
from helmdash.operations.recorder import RecorderState, recorder
from helmdash.pages import scope
from helmdash.pages.guards import post_only
from helmdash.pages.parts.jobs import job_row
from helmdash.pages.render import PageRequest, etag, show, unless_known
from helmdash.queries import exporting, jobs, ledger, rollups
from helmdash.queries.ledger import LedgerCounts, ProcessLedger

# Older ones are in the sum; who wants them one by one looks into the table.
_MOST_PROCESSES = 30
# A process with nothing to say writes its row once a minute; after three, something is wrong.
_SILENT = timedelta(minutes=3)
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWords:
    """A state of the recorder, for reading; `level` gives its shape and colour."""

    level: Level
    word: str
    sentence: str


_STATES = {
    RecorderState.STORING: StateWords(
        level=Level.HEALTHY,
        word="Storing",
        sentence="Calls go to the database as they come.",
    ),
    RecorderState.SPOOLING: StateWords(
        level=Level.CAUTION,
        word="Spooling",
        sentence="The database is unavailable, or was until just now. Calls wait on disk and are "
        "stored in order; clients of the gateway notice nothing.",
    ),
    RecorderState.FULL: StateWords(
        level=Level.CRITICAL,
        word="Full",
        sentence="There is no room left for calls that wait. Clients are served on, but their "
        "calls are dropped until the database is back.",
    ),
    RecorderState.STOPPED: StateWords(
        level=Level.CRITICAL,
        word="Stopped",
        sentence="Nothing is stored. Read the server's log, and restart it.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process: its numbers, and how it goes or how it ended."""

    process: ProcessLedger
    standing: str
    is_bad: bool


@require_safe
def recorder_page(request: PageRequest) -> HttpResponse:
    """All processes added up, and one by one; live."""
    request.now = timezone.now()
    here = scope.read(request)
    own = recorder().own_ledger()
    state = recorder().state()
    has_writer_process = recorder().has_writer_process
    totals = ledger.totals(own=own)
    processes = ledger.processes(own=own, limit=_MOST_PROCESSES)
    states = jobs.jobs()
    mark = _mark(state, totals, processes, request.now)
    waiting = rollups.waiting(now=request.now)
    countings = rollups.countings() if waiting.projects else ()
    still = [replace(each, now=_EPOCH) for each in states]
    stuck = recorder().stuck_files()
    found = replica()
    beside = found.state() if found is not None else None
    request.etag = etag(
        request.path,
        repr(
            (
                *(mark, has_writer_process, still, waiting.calls, countings, stuck),
                beside and beside.problem,
            )
        ),
    )
    context = {
        "state": _STATES[state],
        "totals": totals,
        "has_writer_process": has_writer_process,
        "stuck_files": stuck,
        "for_rollups": waiting,
        "countings": countings,
        "replica": beside,
        "is_empty": not totals.accepted and not totals.in_flight_lost,
        "rows": [_row(process, request.now) for process in processes],
        "jobs": [job_row(each) for each in states],
        "exports": exporting.export_states(
            told_to=None if here.may_administer else here.project.id
        ),
        "spool_max_bytes": conf.env().spool_max_bytes,
        "is_open": conf.env().metrics_open,
        "base": request.build_absolute_uri("/").rstrip("/"),
    }
    return unless_known(
        request,
        lambda: show(request, "pages/recorder.html", context, fragment="pages/_recorder.html"),
    )


@post_only("recorder")
def start_job(request: PageRequest) -> HttpResponse:
    """Have a server do a job now, or go on with one that was cancelled."""
    return _ask(request, asking.start, "A server starts it within some seconds.")


@post_only("recorder")
def cancel_job(request: PageRequest) -> HttpResponse:
    """Have a job end after the step that it is at."""
    return _ask(request, asking.cancel, "It ends after the step that it is at.")


def _ask(request: PageRequest, ask: Callable[..., None], said: str) -> HttpResponse:
    try:
        ask(actor=scope.current_actor(request), name=request.POST.get("job", ""))
        messages.success(request, said)
    except asking.UnknownJob as error:
        messages.error(request, str(error))
    return HttpResponseRedirect(reverse("recorder") + "#jobs")


def _mark(
    state: RecorderState,
    totals: LedgerCounts,
    processes: tuple[ProcessLedger, ...],
    now: datetime,
) -> str:
    """What the fragment shows; of moments only the minute, so that relative times move."""
    rows = [(row.name, row.stopped_at, row.counts, _standing(row, now)) for row in processes]
    return repr((state, totals, rows, int(now.timestamp()) // 60))


def _row(process: ProcessLedger, now: datetime) -> ProcessRow:
    standing, is_bad = _standing(process, now)
    return ProcessRow(process=process, standing=standing, is_bad=is_bad)


def _standing(process: ProcessLedger, now: datetime) -> tuple[str, bool]:
    """In words, and whether somebody should look. Who stops in order says so with its last row."""
    stopped_at = process.stopped_at
    if stopped_at is not None:
        is_forced = stopped_at > process.seen_at
        return ("crashed", True) if is_forced else ("shut down", False)
    if process.is_own:
        return "running: it answers this page", False
    if now - process.seen_at > _SILENT:
        return "not responding; perhaps crashed", True
    return "running", False
