"""Calls that a model answers: placed, remediated, held to their budget, and forwarded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from helmdash.doors.asgi import Receive
from helmdash.gateway.budgeting import check_budget
from helmdash.gateway.forwarding.capture.recording import CallRecording
from helmdash.gateway.forwarding.forwarder import Forwarder
from helmdash.gateway.forwarding.response_headers import remediation_headers
from helmdash.gateway.kept_ids import check_kept_ids
from helmdash.gateway.local_models import LocalModels
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.placing import place
from helmdash.gateway.prompt_weight import deferred_bytes, weigh, weigh_tools
from helmdash.gateway.refusals import Refusal, bad_request
from helmdash.gateway.remediation.remediator import Remediator
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.naming import name_client, name_conversation
from helmdash.gateway.requests.request import GatewayRequest
from helmdash.gateway.responder import Header, Responder
from helmdash.operations.recorder import Recorder
from helmdash.providers.errors import BadRequest
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import ChatRequest
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listings import Listings

# Nearly all bodies defer no tool, and are not looked through for one.
_MAY_DEFER: Final = b'"defer_loading"'


class Calls:
    """Answers chats and embeddings, one for each gateway."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        client: UpstreamClient,
        listings: Listings,
        keepers: ReplyKeepers,
    ) -> None:
        self._listings = listings
        self._keepers = keepers
        self._local = LocalModels(client, listings)
        self._remediator = Remediator(recorder)
        self._recording = CallRecording(recorder, self._local, self._remediator, keepers)
        self._forwarder = Forwarder(
            client, listings.formats, self._recording, self._remediator.fresh_starts
        )

    def close(self) -> None:
        """End the threads that ask the database; what waits there is given up."""
        self._local.close()
        self._remediator.close()

    async def chat(
        self,
        request: GatewayRequest,
        body: bytes,
        parsed: dict[str, Any],
        receive: Receive,
        responder: Responder,
    ) -> None:
        """Answer a chat request. Raises Refusal for one that names no model that is served."""
        chat = _read(request, parsed, responder.client)
        exchange = request.begin(chat.model, body, purpose=request.route.purpose)
        exchange.request = chat
        exchange.metadata = chat.metadata
        name_client(exchange, chat)
        name_conversation(exchange, chat)
        exchange.tools_bytes, exchange.offered = weigh_tools(parsed)
        images, composition = weigh(chat)
        outgoing = exchange.outgoing = OutgoingRequest(
            body=body, parsed=parsed, chat=chat, images=images, composition=composition
        )
        try:
            await place(exchange, self._listings)
            if exchange.is_native and _MAY_DEFER in body:
                outgoing = _without_deferred(exchange, outgoing)
            await check_kept_ids(exchange, parsed, self._keepers)
            await self._local.fit(exchange)
            outgoing = await self._remediator.prepare(exchange, responder.client, outgoing)
            check_budget(exchange)
            await self._forwarder.forward(exchange, outgoing, responder, receive)
        except Refusal as refusal:
            await self._refuse(exchange, refusal, responder)

    async def embed(
        self,
        request: GatewayRequest,
        body: bytes,
        parsed: dict[str, Any],
        receive: Receive,
        responder: Responder,
    ) -> None:
        """Answer a request for embeddings. Raises Refusal as `chat` does."""
        exchange = request.begin(parsed.get("model"), body, purpose="embedding")
        try:
            await place(exchange, self._listings)
            check_budget(exchange)
            outgoing = OutgoingRequest(body=body, parsed=parsed)
            await self._forwarder.forward(exchange, outgoing, responder, receive)
        except BadRequest as error:
            raise bad_request(str(error)) from None
        except Refusal as refusal:
            await self._refuse(exchange, refusal, responder)

    async def _refuse(self, exchange: Exchange, refusal: Refusal, responder: Responder) -> None:
        """A refusal of a call whose model is known is a call that failed, and recorded as one."""
        if not refusal.records:
            raise refusal
        exchange.fail(refusal.recorded, http_status=refusal.recorded.status)
        self._recording.settle(exchange)
        headers: list[Header] = [(b"x-helmdash-call-id", exchange.call_id.encode())]
        await responder.error(refusal.error, [*headers, *remediation_headers(exchange.remediation)])


def _without_deferred(exchange: Exchange, outgoing: OutgoingRequest) -> OutgoingRequest:
    """The request weighed without the tools that its provider keeps out of the prompt."""
    size = deferred_bytes(outgoing.parsed)
    exchange.tools_bytes, exchange.offered = weigh_tools(outgoing.parsed, defers=True)
    exchange.outgoing = replace(outgoing, deferred_bytes=size)
    return exchange.outgoing


def _read(request: GatewayRequest, parsed: dict[str, Any], client: ClientFormat) -> ChatRequest:
    try:
        return client.read_request(parsed, model=request.route.model, stream=request.route.stream)
    except BadRequest as error:
        raise bad_request(str(error)) from None
