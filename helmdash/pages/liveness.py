"""Is the process up, and can it do its work: for load balancers and `make run` (api.md)."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from helmdash.queries import liveness


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """The database answers and its tables are there; 503 otherwise."""
    problem = liveness.database_problem()
    if problem is None:
        return JsonResponse({"status": "ok", "database": "ok"})
    response = JsonResponse({"status": "unavailable", "database": problem}, status=503)
    response["Retry-After"] = "5"
    return response
