"""The request that goes to an upstream, written in its format."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import LEAST_SECRET_CHARS, Endpoint
from helmdash.gateway.forwarding.attempt import Attempt, Translator
from helmdash.gateway.forwarding.chat import chat_request
from helmdash.gateway.forwarding.client_headers import with_client_headers
from helmdash.gateway.forwarding.embeddings import embedding_request
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.gateway.refusals import unspeakable
from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import ClientFormat, HttpRequest


def prepare(exchange: Exchange, outgoing: OutgoingRequest, client: ClientFormat) -> Attempt:
    """The attempt at a placed call's upstream; `client` is the format its client speaks.

    Raises Refusal when the upstream's format cannot say what the client wants, or its address leads
    back to us; BadRequest when embeddings have to be written anew and cannot be read.
    """
    endpoint = exchange.endpoint
    assert endpoint is not None
    is_native = exchange.is_native
    request: HttpRequest
    translator: Translator
    try:
        if outgoing.chat is None:
            request, translator = embedding_request(exchange, endpoint, outgoing)
        else:
            request, translator = chat_request(exchange, endpoint, outgoing, outgoing.chat, client)
    except CannotTranslate as error:
        raise unspeakable(str(error), endpoint, is_native=is_native) from None
    return Attempt(
        endpoint=endpoint,
        http_request=with_client_headers(
            request, exchange.headers, is_native=is_native, upstream=endpoint.name
        ),
        translator=translator,
        secret=_secret(endpoint),
    )


def _secret(endpoint: Endpoint) -> bytes | None:
    key = (endpoint.api_key or "").encode()
    return key if len(key) >= LEAST_SECRET_CHARS else None
