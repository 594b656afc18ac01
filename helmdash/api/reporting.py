"""Reports of calls, from the request to the answer, without the storing in between.

Django's views and the faster door beside them (helmdash.api.fast) share this, so that both read,
refuse and answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest

from helmdash.api.auth import Access
from helmdash.api.captures import read_batch
from helmdash.api.parsing import read_body
from helmdash.api.responding import Answered
from helmdash.api.schemas import reports
from helmdash.api.schemas.calls import BatchAnswer, BatchResult
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture
from helmdash.operations.recording.call_batch import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Calls to store, and the answer once they are. size: bytes of the body that told them."""

    captures: Sequence[Capture]
    size: int
    respond: Callable[[Sequence[Recorded]], Answered]


def read_single(request: HttpRequest, *, access: Access, at: datetime) -> Report:
    """The report of one call. access, at: who made it and when it began, where it does not say.

    Raises Problem.
    """
    told = read_body(request, reports.CALL)
    capture = to_capture(told, route=CallRoute.API, caller=access.name, at=at)
    return Report(captures=[capture], size=len(request.body), respond=_answer_single)


def read_many(request: HttpRequest, *, access: Access, at: datetime) -> Report:
    """The report of a batch, of which only the good calls are to be stored; the rest as
    `read_single`. Raises Problem."""
    good, rejected = read_batch(request, access=access, at=at)

    def respond(recorded: Sequence[Recorded]) -> Answered:
        duplicates = sum(item.duplicate for item in recorded)
        body = BatchAnswer(
            stored=len(recorded) - duplicates,
            duplicates=duplicates,
            rejected=tuple(rejected),
            results=tuple(
                BatchResult(index=index, id=item.id, level=item.health.level)
                for (index, _), item in zip(good, recorded, strict=True)
            ),
        )
        return Answered(body)

    captures = [capture for _, capture in good]
    return Report(captures=captures, size=len(request.body), respond=respond)


def _answer_single(recorded: Sequence[Recorded]) -> Answered:
    (only,) = recorded
    return Answered(only, status=200 if only.duplicate else 201)
