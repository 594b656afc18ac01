"""Whether a client of Ollama's `/api/generate` gets the array of token ids, and its stream without.

It is dropped unless the client works with it: it sent one itself, or asks for it in a header.
"""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.pipes import Native, Pipe
from helmdash.providers import ollama
from helmdash.providers.ollama.context_array import ContextDropper
from helmdash.providers.protocols import StreamReader, StreamWriter
from helmdash.providers.wire import ChatRequest

_HEADER = b"x-helmdash-ollama-context"
_KEEP = b"keep"


def is_dropped(exchange: Exchange, request: ChatRequest, headers: Mapping[bytes, bytes]) -> bool:
    """Whether the `context` of this call's reply stays here."""
    if exchange.route.client is not ollama.GENERATE_CLIENT or exchange.endpoint is None:
        return False
    if exchange.endpoint.kind is not ProviderKind.OLLAMA:
        return False  # translated: there is none
    is_sent = any(name.casefold() == "context" and value for name, value in request.extra.items())
    return not is_sent and headers.get(_HEADER, b"").strip().lower() != _KEEP


def pipe(reader: StreamReader, writer: StreamWriter) -> Pipe:
    """For a stream whose `context` is dropped."""
    return Native(ContextDropper(reader), writer)
