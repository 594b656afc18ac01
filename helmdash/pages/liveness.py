"""Is the process up, and can it do its work: for load balancers and `make run` (api.md)."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from helmdash.operations.recorder import RecorderState, recorder
from helmdash.queries import liveness

# What the recorder says when it can take no further call.
_UNABLE = frozenset({RecorderState.FULL, RecorderState.STOPPED})


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """The database answers, its tables are there, and the recorder takes calls; 503 otherwise.

    While the database is away the gateway serves on and the recorder spools; but pages and reports
    fail, so that a load balancer should prefer another process.
    """
    problem = liveness.database_problem()
    state = recorder().state()
    is_ready = problem is None and state not in _UNABLE
    response = JsonResponse(
        {
            "status": "ok" if is_ready else "unavailable",
            "database": problem or "ok",
            "recorder": {
                "state": state.value,
                "waiting": recorder().waiting(),
                "spool_bytes": recorder().standing().counts.spool_bytes,
            },
        },
        status=200 if is_ready else 503,
    )
    if not is_ready:
        response["Retry-After"] = "5"
    return response
