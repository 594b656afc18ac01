"""What is refused before the SDK sees the request, as JSON-RPC errors that clients show.

The official client hands a JSON-RPC error on to its caller whatever the HTTP status; of any other
body it would only say that there was an error.
"""

from __future__ import annotations

import json

from helmdash.doors.asgi import Send
from helmdash.doors.faults import Fault, NoKey

# JSON-RPC's own codes.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600

Header = tuple[bytes, bytes]


class ToolRefusal(Exception):
    """A request that goes no further; `status` is the HTTP status.

    `code` of the error is the status, too, where JSON-RPC has no word for it: its own codes are
    below -32000, all others are the application's.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        word: str,
        code: int | None = None,
        headers: tuple[Header, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": status if code is None else code,
                "message": message,
                "data": {"error": word},
            },
        }


def refusal_of(fault: Fault) -> ToolRefusal:
    """What stopped the request at the door."""
    headers: list[Header] = []
    if fault.status == 401:
        token = b"" if isinstance(fault, NoKey) else b', error="invalid_token"'
        headers.append((b"www-authenticate", b'Bearer realm="HelmDash"' + token))
    if fault.retry_after_s is not None:
        headers.append((b"retry-after", str(fault.retry_after_s).encode()))
    return ToolRefusal(fault.status, str(fault), word=fault.code, headers=tuple(headers))


def unavailable(message: str) -> ToolRefusal:
    """503: the database is unavailable; the client may try again."""
    return ToolRefusal(503, message, word="unavailable", headers=((b"retry-after", b"5"),))


def bad_host(host: str) -> ToolRefusal:
    """400: the server does not answer to this name."""
    return ToolRefusal(
        400,
        f"This server does not answer to the host {host[:200]!r}. "
        "Name it in HELMDASH_ALLOWED_HOSTS or HELMDASH_PUBLIC_URL.",
        word="host_not_allowed",
        code=INVALID_REQUEST,
    )


def bad_origin(origin: str) -> ToolRefusal:
    """403: a web page of another site asks (DNS rebinding)."""
    return ToolRefusal(
        403,
        f"Pages of {origin[:200]!r} may not ask this server. "
        "Name the host in HELMDASH_ALLOWED_HOSTS if they should.",
        word="origin_not_allowed",
    )


def wrong_method() -> ToolRefusal:
    """405: without sessions there is nothing to listen to, and nothing to end."""
    return ToolRefusal(
        405,
        "Use POST: this server has no sessions and sends nothing that was not asked for.",
        word="method_not_allowed",
        code=INVALID_REQUEST,
        headers=((b"allow", b"POST"),),
    )


def malformed(message: str) -> ToolRefusal:
    """400: the body is not JSON as it should be."""
    return ToolRefusal(400, message, word="malformed", code=PARSE_ERROR)


def not_a_request(message: str) -> ToolRefusal:
    """400: JSON, but no JSON-RPC message."""
    return ToolRefusal(400, message, word="malformed", code=INVALID_REQUEST)


async def send_refusal(send: Send, refusal: ToolRefusal) -> None:
    """Answer, and close the connection: the rest of the body is not read."""
    body = json.dumps(refusal.body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
