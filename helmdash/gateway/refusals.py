"""What the gateway itself refuses, told in the client's own protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.doors.faults import Fault
from helmdash.providers.wire import WireError

# For a status: the code and the type of an error, as the vendors call them.
_WORDS = {
    401: ("invalid_api_key", "authentication_error"),
    408: ("request_timeout", "invalid_request_error"),
    413: ("request_too_large", "request_too_large"),
    429: ("rate_limit_exceeded", "rate_limit_error"),
    503: ("service_unavailable", "overloaded_error"),
}


class Refusal(Exception):
    """A request that goes no further. `error` is what the client is told.

    `records`: whether it counts as a call (a model was asked for, and it failed). `code`: what the
    record says, where the client's own protocol has another word.
    """

    def __init__(self, error: WireError, *, records: bool = False, code: str | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.records = records
        self.recorded = replace(error, code=code, status=None) if code else error


def bad_request(message: str, *, code: str = "invalid_request_error") -> Refusal:
    """400 with a message that names the member and the fix."""
    return Refusal(WireError(message=message, code=code, type="invalid_request_error", status=400))


def not_kept(message: str, *, code: str, param: str) -> Refusal:
    """400: what the request goes on from is not the project's, or is not there; recorded as a
    call."""
    kind = "invalid_request_error"
    error = WireError(message=message, code=code, type=kind, status=400, param=param)
    return Refusal(error, records=True)


def no_thread(message: str, *, code: str, status: int) -> Refusal:
    """400 or 404: the client has to do without the thread, and knows so by the code (`thread_…`);
    recorded as a call."""
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    error = WireError(message=message, code=code, type=kind, status=status, param="thread")
    return Refusal(error, records=True)


def unspeakable(message: str, endpoint: Endpoint, *, is_native: bool) -> Refusal:
    """400: the upstream's format has no way to say what the client wants; recorded as a call."""
    where = "" if is_native else f" The upstream {endpoint.name} speaks the API of {endpoint.kind}."
    return Refusal(bad_request(f"{message}{where}").error, records=True)


def refusal_of(fault: Fault) -> Refusal:
    """What stopped a request before its body was read, in words that SDKs compare."""
    code, kind = _WORDS.get(fault.status, ("invalid_request_error", "invalid_request_error"))
    return Refusal(
        WireError(
            message=str(fault),
            code=code,
            type=kind,
            status=fault.status,
            retry_after_s=fault.retry_after_s,
        )
    )


def forbidden(message: str) -> Refusal:
    """403: the key may not do this."""
    return Refusal(
        WireError(message=message, code="permission_denied", type="permission_error", status=403)
    )


def not_found(message: str, *, code: str = "not_found", records: bool = False) -> Refusal:
    """404: no such endpoint, or no upstream for the model."""
    error = WireError(message=message, code=code, type="not_found_error", status=404)
    return Refusal(error, records=records)


def wrong_method(method: str, taken: Iterable[str | None]) -> Refusal:
    """405: the endpoint is there, the method is another. taken: those that it takes."""
    wanted = " or ".join(filter(None, taken))
    return Refusal(
        WireError(
            message=f"This endpoint takes {wanted}, not {method}.",
            code="method_not_allowed",
            type="invalid_request_error",
            status=405,
        )
    )


def busy(message: str) -> Refusal:
    """503: not now; the client may come back in a second."""
    return Refusal(
        WireError(
            message=message,
            code="service_unavailable",
            type="overloaded_error",
            status=503,
            retry_after_s=1.0,
        )
    )


def in_a_circle(upstream: str) -> Refusal:
    """421: the upstream's address leads back to this gateway. (No 5xx: those are tried again.)"""
    error = WireError(
        message=f"The upstream {upstream} leads back to HelmDash. Correct its address.",
        code="misconfigured",
        type="invalid_request_error",
        status=421,
    )
    return Refusal(error, records=True)
