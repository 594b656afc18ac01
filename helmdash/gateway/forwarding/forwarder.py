"""Forwarding one call: the row of its stages."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from helmdash.doors.asgi import Receive
from helmdash.doors.http.turns import Turns
from helmdash.gateway.forwarding.answering import response_to
from helmdash.gateway.forwarding.capture.recording import CallRecording
from helmdash.gateway.forwarding.interruption import response_to_interruption
from helmdash.gateway.forwarding.noting import note_reply
from helmdash.gateway.forwarding.preparing import prepare
from helmdash.gateway.forwarding.relaying import relay
from helmdash.gateway.forwarding.response_headers import own_headers
from helmdash.gateway.forwarding.sending import Sender
from helmdash.gateway.forwarding.upstream_reply import StreamReply
from helmdash.gateway.forwarding.watching import ClientWatch
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.refusals import Refusal
from helmdash.gateway.remediation.fresh_starts import FreshStarts
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Responder, Response
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.spoken_formats import SpokenFormats


class Forwarder:
    """Forwards calls to upstreams and their replies to clients."""

    def __init__(
        self,
        client: UpstreamClient,
        formats: SpokenFormats,
        recording: CallRecording,
        fresh_starts: FreshStarts,
    ) -> None:
        self._sender = Sender(client, formats, fresh_starts)
        self._recording = recording
        self._turns: Turns | None = None

    async def forward(
        self,
        exchange: Exchange,
        outgoing: OutgoingRequest,
        responder: Responder,
        receive: Receive,
    ) -> None:
        """Send the request of a placed call and answer the client, whatever happens.

        Raises Refusal when the upstream's format cannot say what the client wants, and when no
        call can be recorded just now.
        """
        attempt = prepare(exchange, outgoing, responder.client)
        recording = self._recording
        response: Response | None = None
        recording.open(exchange)
        watch = ClientWatch(receive, responder.connection)
        try:
            reply = await self._sender.last_reply(exchange, attempt, responder.client)
            if isinstance(reply, StreamReply):
                turns = self._turns = self._turns or Turns(asyncio.get_running_loop())
                await relay(exchange, reply, responder, watch, recording, turns)
            else:
                note_reply(exchange, reply)
                response = response_to(exchange, reply)
                recording.settle(exchange)
                if exchange.unkept is not None and response.is_good:
                    await recording.secure(exchange)
        except Refusal as refusal:
            # What is to be sent instead cannot be said to this upstream, or was not recorded.
            exchange.fail(refusal.recorded)
            response = Response(error=refusal.error, headers=own_headers(exchange))
        except (Exception, asyncio.CancelledError) as cause:
            response = response_to_interruption(exchange, cause, has_left=watch.has_left)
        finally:
            watch.stop()
            recording.settle(exchange)
        if response is not None:
            # Cancelled here, the server stops and the client reads slowly: it gets no more.
            with suppress(asyncio.CancelledError):
                await responder.respond(response)
