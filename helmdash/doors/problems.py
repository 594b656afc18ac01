"""Error responses: application/problem+json (RFC 9457), one shape for everything.

Nothing in a problem comes from inside: no stack, no secret, no text of a library or the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from helmdash.answers import answer
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.doors.faults import Fault, NoKey

CONTENT_TYPE = "application/problem+json"
# The page with a row for each code.
_TABLE = "/api/v1/docs"
# How long a client should wait while the database is unavailable: long enough for a restart of it.
RETRY_AFTER_SECONDS = 5
# A detail names at most this many faults; `errors` has them all.
_FAULTS_IN_DETAIL = 3


class Code(StrEnum):
    """What went wrong, as a word a program can compare."""

    MALFORMED = "malformed"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TOO_SLOW = "request_timeout"
    TOO_MANY_REQUESTS = "too_many_requests"
    CONFLICT = "conflict"
    CHANGED = "precondition_failed"
    TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    INVALID = "invalid"
    UNDECODABLE = "undecodable"
    OVER_BUDGET = "over_budget"
    INTERNAL = "internal"
    PLAN_FAILED = "plan_failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the table of problems: the status and what the code means."""

    status: int
    title: str
    meaning: str


KINDS: Mapping[Code, Kind] = {
    Code.MALFORMED: Kind(
        status=400,
        title="Malformed request",
        meaning="The body is not JSON, or the request cannot be read.",
    ),
    Code.UNAUTHORIZED: Kind(
        status=401,
        title="API key needed",
        meaning="No API key came along, or it is unknown or revoked.",
    ),
    Code.FORBIDDEN: Kind(
        status=403,
        title="Not allowed",
        meaning="The key is good, but lacks the scope that the detail names, or may not touch what "
        "holds for every project.",
    ),
    Code.NOT_FOUND: Kind(
        status=404, title="Not found", meaning="Nothing is there, or not in the key's project."
    ),
    Code.METHOD_NOT_ALLOWED: Kind(
        status=405,
        title="Method not allowed",
        meaning="The address is right, the method is not; see the Allow header.",
    ),
    Code.TOO_SLOW: Kind(
        status=408,
        title="Request too slow",
        meaning="The body was not here in time (HELMDASH_BODY_SECONDS).",
    ),
    Code.TOO_MANY_REQUESTS: Kind(
        status=429,
        title="Too many requests",
        meaning="The key sends more requests a second, or more large ones, than it may, or too "
        "many wrong keys came from its address; try again after Retry-After seconds.",
    ),
    Code.CONFLICT: Kind(
        status=409, title="Conflict", meaning="The request does not go with what is stored."
    ),
    Code.CHANGED: Kind(
        status=412,
        title="Changed meanwhile",
        meaning="What If-Match guards is not as it was read; read it again and repeat the edit.",
    ),
    Code.TOO_LARGE: Kind(
        status=413,
        title="Request body too large",
        meaning="The body is over HELMDASH_MAX_BODY_BYTES.",
    ),
    Code.UNSUPPORTED_MEDIA_TYPE: Kind(
        status=415, title="Not JSON", meaning="Send the body as application/json, uncompressed."
    ),
    Code.INVALID: Kind(
        status=422,
        title="Invalid request",
        meaning="A field is wrong or unknown; `errors` names each one.",
    ),
    Code.UNDECODABLE: Kind(
        status=422,
        title="No JSON in the text",
        meaning="No stage of decoding found a value; `cause` says what is wrong with the text.",
    ),
    Code.OVER_BUDGET: Kind(
        status=422,
        title="Over budget",
        meaning="The prompt is too big without any chunk; `over_by` says by how many tokens, "
        "`manifest` which part takes how many. Nothing was sent to a model.",
    ),
    Code.INTERNAL: Kind(
        status=500,
        title="Internal error",
        meaning="A fault of HelmDash; the server's log has the details.",
    ),
    Code.PLAN_FAILED: Kind(
        status=502,
        title="No plan",
        meaning="The model gave no usable plan or route; `cause` says why and what to do, "
        "`attempts` has every call that was made.",
    ),
    Code.UNAVAILABLE: Kind(
        status=503,
        title="Unavailable",
        meaning="The database is unavailable, or the recorder has too much to store; try again "
        "after Retry-After seconds.",
    ),
}


@answer("FieldError")
@dataclass(frozen=True, slots=True)
class FieldFault:
    """One wrong field: its dotted path and what to do."""

    field: str
    message: str


@dataclass(slots=True, kw_only=True)
class Problem(Exception):
    """The request ends here, with this answer. `extra` holds further members of the body."""

    code: Code
    detail: str
    faults: tuple[FieldFault, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)


def invalid(faults: Iterable[FieldFault]) -> Problem:
    """A 422 that names each wrong field."""
    found = tuple(faults)
    said = [f"{fault.field}: {fault.message}" for fault in found[:_FAULTS_IN_DETAIL]]
    if len(found) > _FAULTS_IN_DETAIL:
        said.append(f"and {len(found) - _FAULTS_IN_DETAIL} more")
    return Problem(code=Code.INVALID, detail="; ".join(said), faults=found)


def invalid_field(name: str, message: str) -> Problem:
    """422 with the code `invalid`: `message` says what to do about the member `name`."""
    return invalid([FieldFault(name, message)])


def not_found(what: str) -> Problem:
    """A 404; `what` is a sentence."""
    return Problem(code=Code.NOT_FOUND, detail=what)


def unavailable(why: str = "The database is unavailable.") -> Problem:
    """A 503 while the database is unavailable, or for another reason that passes."""
    return Problem(
        code=Code.UNAVAILABLE,
        detail=f"{why} Try again in {RETRY_AFTER_SECONDS} seconds.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def body_of(problem: Problem) -> bytes:
    """The problem as JSON. Its `type` leads to the row of the API page's table."""
    kind = KINDS[problem.code]
    body: dict[str, object] = {
        "type": f"{_TABLE}#{problem.code.value}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "code": problem.code.value,
    }
    if problem.faults:
        body["errors"] = problem.faults
    return dump_json(body | dict(problem.extra))


def problem_of_fault(fault: Fault) -> Problem:
    """What stopped a request at the door."""
    headers: dict[str, str] = {}
    if fault.status == 401:
        token = "" if isinstance(fault, NoKey) else ', error="invalid_token"'
        headers["WWW-Authenticate"] = f'Bearer realm="HelmDash"{token}'
    if fault.retry_after_s is not None:
        headers["Retry-After"] = str(fault.retry_after_s)
    return Problem(code=Code(fault.code), detail=str(fault), headers=headers)
