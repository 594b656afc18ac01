"""A call that is cut short: its stream breaks off, its client leaves, the server stops, we fail."""

from __future__ import annotations

import asyncio

from helmdash.gateway.forwarding.response_headers import own_headers
from helmdash.gateway.forwarding.upstream_reply import error_of
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Response
from helmdash.providers.wire import WireError
from helmdash.upstream.failures import UpstreamFailed

_STOPPED = WireError(
    message="HelmDash was stopped during the call.",
    code="gateway_stopped",
    type="api_error",
    status=503,
    retry_after_s=1.0,
)
_LEFT = WireError(message="The client hung up.", code="client_disconnected")
_FAULT = WireError(message="HelmDash failed on this call.", code="internal")


def response_to_interruption(
    exchange: Exchange, cause: BaseException, *, has_left: bool
) -> Response | None:
    """What the client gets now; None where it has left. The task goes on and ends in order.

    Both a client that leaves and a server that stops cancel the task; has_left tells which. Raises
    the cause where it is a fault of our own: the client gets an error, the log says where.
    """
    match cause:
        case UpstreamFailed():
            error = error_of(cause)
        case asyncio.CancelledError():
            _go_on()
            error = _LEFT if has_left else _STOPPED
        case _:
            error = _FAULT
    if error is _LEFT:
        exchange.cancel(error)
        return None
    exchange.fail(error)
    if error is _FAULT:
        raise cause
    return Response(error=error, headers=own_headers(exchange))


def _go_on() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
