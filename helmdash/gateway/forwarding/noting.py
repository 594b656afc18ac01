"""What the record keeps of a reply that is here as a whole."""

from __future__ import annotations

from typing import assert_never

from helmdash.gateway.forwarding.names_elsewhere import request_id_of
from helmdash.gateway.forwarding.upstream_reply import ErrorReply, NoReply, WholeReply
from helmdash.gateway.requests.exchange import Exchange


def note_reply(exchange: Exchange, reply: NoReply | ErrorReply | WholeReply) -> None:
    """Note it in the call's exchange: when it came, what it holds, what went wrong."""
    exchange.heard_ns = reply.heard_ns
    exchange.request_id = request_id_of(reply.headers)
    match reply:
        case WholeReply():
            exchange.first_ns = reply.heard_ns
            exchange.reply = reply.reply
        case ErrorReply():
            exchange.fail(reply.error, is_own=False)
        case NoReply():
            exchange.fail(reply.error, http_status=reply.http_status, is_own=reply.is_own)
        case _:
            assert_never(reply)
