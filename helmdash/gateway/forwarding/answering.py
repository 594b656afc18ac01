"""What a client is told of a reply that is here as a whole, in its own format."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from helmdash.core.calls.usage import normalise_usage
from helmdash.gateway.forwarding.levels import level_of
from helmdash.gateway.forwarding.overflow_errors import is_json_body, normalise_overflow_error
from helmdash.gateway.forwarding.response_headers import own_headers
from helmdash.gateway.forwarding.upstream_reply import ErrorReply, NoReply, WholeReply
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Header, Response


def response_to(exchange: Exchange, reply: NoReply | ErrorReply | WholeReply) -> Response:
    """The response to this reply: handed on as it is where the client can read it."""
    status, body, error = 200, b"", None
    content_type: tuple[Header, ...] = ()
    match reply:
        case NoReply():
            error = reply.error
        case ErrorReply() if reply.is_native and is_json_body(reply.data):
            status, body, content_type = reply.status, reply.data, (reply.content_type,)
        case ErrorReply():
            status = reply.error.status or reply.status
            error = normalise_overflow_error(replace(reply.error, status=status), exchange)
        case WholeReply() if reply.is_native:
            body, content_type = reply.translator.pass_whole(reply.data), (reply.content_type,)
            status = reply.status
        case WholeReply() if reply.reply.error is not None:
            error = replace(reply.reply.error, status=reply.reply.error.status or 502)
        case WholeReply():
            body, kind = reply.translator.write_whole(reply.reply)
            content_type = (kind,)
        case _:
            assert_never(reply)
    level = "unknown"
    if isinstance(reply, WholeReply):
        level = level_of(exchange, normalise_usage(reply.reply.usage))
    headers = [*own_headers(exchange, level=level), *reply.headers, *content_type]
    return Response(status=status, body=body, error=error, headers=headers)
