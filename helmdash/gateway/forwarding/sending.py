"""Sending a request: once more, and shorter, where the upstream says that it was too long."""

from __future__ import annotations

from time import perf_counter_ns

from helmdash.gateway.forwarding.attempt import Attempt
from helmdash.gateway.forwarding.preparing import prepare
from helmdash.gateway.forwarding.upstream_reply import (
    ErrorReply,
    StreamReply,
    UpstreamReply,
    WholeReply,
    no_reply,
    read_reply,
)
from helmdash.gateway.remediation.fresh_starts import FreshStarts
from helmdash.gateway.requests.exchange import Exchange
from helmdash.heavy import end_turn
from helmdash.providers.protocols import ClientFormat
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.spoken_formats import SpokenFormats


class Sender:
    """Sends attempts, one after the other."""

    def __init__(
        self, client: UpstreamClient, formats: SpokenFormats, fresh_starts: FreshStarts
    ) -> None:
        self._client = client
        self._formats = formats
        self._fresh_starts = fresh_starts

    async def last_reply(
        self, exchange: Exchange, attempt: Attempt, client: ClientFormat
    ) -> UpstreamReply:
        """The upstream's last word, after a fresh start where the request was too long, and in
        another format where it does not speak the client's.

        Raises Refusal when that other request cannot be written.
        """
        while True:
            reply = await self._reply(exchange, attempt)
            if isinstance(reply, ErrorReply) and self._is_foreign(exchange, reply):
                # Not a try of the call's: it told what the upstream speaks.
                exchange.notes["not_spoken"] = f"{client.wire} ({reply.status})"
                attempt = prepare(exchange, exchange.outgoing, client)
                continue
            if isinstance(reply, ErrorReply):
                exchange.refused_window = reply.refused_window or exchange.refused_window
            if not isinstance(reply, ErrorReply | WholeReply) or not reply.too_long:
                return reply
            shorter = await self._fresh_starts.shorten(exchange, client, is_refused=True)
            if shorter is None:
                return reply
            exchange.refused_attempts = reply.too_long
            attempt = prepare(exchange, shorter, client)

    def _is_foreign(self, exchange: Exchange, reply: ErrorReply) -> bool:
        """Whether the upstream has shown that it has nothing at the client's address: then it is
        spoken to by translation from here on."""
        endpoint, client = exchange.endpoint, exchange.route.client
        if endpoint is None or not exchange.is_native:
            return False
        if not self._formats.learn(endpoint, client, reply.error, status=reply.status):
            return False
        exchange.is_native = False
        return True

    async def _reply(self, exchange: Exchange, attempt: Attempt) -> UpstreamReply:
        exchange.sent_ns = exchange.sent_ns or perf_counter_ns()
        exchange.http_status = None
        end_turn()
        try:
            opened = await self._client.open(attempt.endpoint, attempt.http_request)
        except UpstreamFailed as failure:
            reply: UpstreamReply = no_reply(failure)
        else:
            # Noted already now: the client may leave while the reply is read.
            exchange.http_status = opened.status
            exchange.attempts = opened.attempts
            reply = await read_reply(attempt, opened)
        if not isinstance(reply, StreamReply):
            exchange.attempts = reply.attempts
        return reply
