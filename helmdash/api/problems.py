"""Problems as Django's answers; what they are stands in helmdash.doors.problems."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from helmdash.doors.problems import (
    CONTENT_TYPE,
    KINDS,
    RETRY_AFTER_SECONDS,
    Code,
    FieldFault,
    Kind,
    Problem,
    body_of,
    invalid,
    invalid_field,
    not_found,
    problem_of_fault,
    unavailable,
)

__all__ = [
    "CONTENT_TYPE",
    "KINDS",
    "RETRY_AFTER_SECONDS",
    "Code",
    "FieldFault",
    "Kind",
    "Problem",
    "invalid",
    "invalid_field",
    "not_found",
    "problem_of_fault",
    "problem_response",
    "unavailable",
]


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The problem as an HTTP answer."""
    response = HttpResponse(
        body_of(problem), status=KINDS[problem.code].status, content_type=CONTENT_TYPE
    )
    # An error is about this one request; nobody should answer another one with it.
    response["Cache-Control"] = "no-store"
    for name, value in problem.headers.items():
        response[name] = value
    return response
