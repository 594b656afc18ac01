"""Is the process up, and can it do its work: for load balancers and `make run` (api.md)."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from helmdash.operations.patience import DatabaseSilent, ask_briefly
from helmdash.operations.recorder import RecorderState, recorder
from helmdash.queries import liveness

# Calls of this process, by what became of them.
_OUTCOMES = ("accepted", "stored", "duplicate", "rejected", "spooled", "dropped")
# What the recorder says when it can take no further call.
_UNABLE = frozenset({RecorderState.FULL, RecorderState.STOPPED})


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """The database answers, its tables are there, and the recorder takes calls; 503 otherwise.

    Says so within about a second, also while the database is silent.
    While the database is away the gateway serves on and the recorder spools; but pages and reports
    fail, so that a load balancer should prefer another process.
    """
    problem = _database_problem()
    counts = recorder().standing().counts
    state = recorder().state()
    is_ready = problem is None and state not in _UNABLE
    response = JsonResponse(
        {
            "status": "ok" if is_ready else "unavailable",
            "database": problem or "ok",
            "recorder": {
                "state": state.value,
                "waiting": recorder().waiting(),
                "spool_bytes": counts.spool_bytes,
                **{name: getattr(counts, name) for name in _OUTCOMES},
            },
        },
        status=200 if is_ready else 503,
    )
    if not is_ready:
        response["Retry-After"] = "5"
    return response


def _database_problem() -> str | None:
    try:
        return ask_briefly(liveness.database_problem)
    except DatabaseSilent as silent:
        return str(silent)
