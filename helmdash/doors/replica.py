"""Requests that only read may be answered from the replica of the database."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import MiddlewareNotUsed
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse

from helmdash.doors.patience import LIVENESS, READING_KEY
from helmdash.operations.database.replica import is_on_replica, reading_elsewhere, replica

# In answers that came from there.
HEADER = "x-helmdash-read-from"
_READS = frozenset({"GET", "HEAD"})


class ReplicaMiddleware:
    """Lets a request read there, and does it again on the primary where that fails."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        found = replica()
        if found is None:
            raise MiddlewareNotUsed
        self._get_response = get_response
        self._replica = found

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READS or request.path in LIVENESS:
            return self._get_response(request)
        with reading_elsewhere(self._replica.has_all) as reading:
            getattr(request, "scope", {})[READING_KEY] = reading
            response = self._get_response(request)
        if not reading.is_on_replica:
            return response
        if response.status_code != 503:
            response[HEADER] = "replica"
            return response
        self._replica.note_failure()
        reading.stay()
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """None: a fault that is told as it is."""
        is_of_database = isinstance(exception, DatabaseError | InterfaceError)
        return HttpResponse(status=503) if is_of_database and is_on_replica() else None
