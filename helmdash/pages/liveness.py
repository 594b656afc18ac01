"""Is the process up, and can it do its work: for load balancers and `make run`."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, JsonResponse

from helmdash.doors.patience import TURNED_AWAY_KEY
from helmdash.operations.database.timeouts import DatabaseNotResponding, with_timeout
from helmdash.operations.recorder import RecorderState, recorder
from helmdash.queries.database import liveness

# Calls of this process, by what became of them.
_OUTCOMES = (
    *("accepted", "stored", "duplicate", "rejected", "spooled", "dropped"),
    *("bare", "damaged_lines"),
)
# What the recorder says when it can take no further call.
_UNABLE = frozenset({RecorderState.FULL, RecorderState.STOPPED})


def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; neither database nor disk is asked."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """What works at this moment: gateway, API, pages, database, recorder, spool; each `ok`, or a
    sentence.

    503 where something that clients ask for does not: the database does not respond, or the
    recorder takes no calls. The gateway serves on while the database is unavailable; a load
    balancer that serves it alone reads `gateway`. A disk that takes no waiting calls, and files of
    the spool that cannot be read, are told (`degraded`) and no reason to stop. Answers within about
    a second, also while database and disk are silent.
    """
    problem = _briefly(liveness.database_problem, about="database")
    if problem is None and getattr(request, "scope", {}).get(TURNED_AWAY_KEY):
        # It answers again; who watches it for everybody has yet to hear so.
        problem = "the database did not respond a moment ago; requests are let in within a second"
    spool = _briefly(recorder().spool_problem, about="disk") or _stuck_files()
    state = recorder().state()
    counts = recorder().own_ledger().counts
    is_ready = problem is None and state not in _UNABLE
    status = "ok" if is_ready and spool is None else "degraded" if is_ready else "unavailable"
    response = JsonResponse(
        {
            "status": status,
            "gateway": _gateway(state, is_database_away=problem is not None) or "ok",
            "api": problem or _api(state) or "ok",
            "pages": problem or "ok",
            "database": problem or "ok",
            "spool": spool or "ok",
            "recorder": {
                "state": state.value,
                "writer": "process" if recorder().has_writer_process else "thread",
                "waiting": recorder().waiting(),
                "spool_bytes": counts.spool_bytes,
                **{name: getattr(counts, name) for name in _OUTCOMES},
            },
        },
        status=200 if is_ready else 503,
    )
    response["Cache-Control"] = "no-store"
    if not is_ready:
        response["Retry-After"] = "5"
    return response


def _gateway(state: RecorderState, *, is_database_away: bool) -> str | None:
    """What of the gateway does not work, if anything."""
    if state is RecorderState.STOPPED:
        return "ok; calls wait in the spool for the next start, for the recorder has stopped"
    if state is RecorderState.FULL:
        return "calls are answered with 503: neither the disk nor the database takes their records"
    if is_database_away:
        return "ok for keys that were used within the last hour; their calls wait in the spool"
    return None


def _api(state: RecorderState) -> str | None:
    if state in _UNABLE:
        return "ok for reading; reports of calls are not taken in"
    return None if recorder().is_writing else "ok for reading; the database takes no writes"


def _stuck_files() -> str | None:
    """Whose they are and why is for people who are signed in: paths are told to nobody else."""
    if not (stuck := recorder().stuck_files()):
        return None
    owners = "a process" if len(stuck) == 1 else f"{len(stuck)} processes"
    return f"files that {owners} left there cannot be read; the recorder's page and doctor say why"


def _briefly(question: Callable[[], str | None], *, about: str) -> str | None:
    try:
        return with_timeout(question, about=about)
    except DatabaseNotResponding:
        return f"the {about} does not respond"
