"""Whether a client of Ollama's `/api/generate` gets the array of token ids.

It is dropped unless the client works with it: it sent one itself, or asks for it in a header.
"""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.providers import ollama
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import ChatRequest

_HEADER = b"x-helmdash-ollama-context"
_KEEP = b"keep"


def is_dropped(
    client: ClientFormat,
    upstream: ProviderKind,
    request: ChatRequest,
    headers: Mapping[bytes, bytes],
) -> bool:
    """Whether the `context` of this call's reply stays here."""
    if client is not ollama.GENERATE_CLIENT or upstream is not ProviderKind.OLLAMA:
        return False  # translated: there is none
    is_sent = any(name.casefold() == "context" and value for name, value in request.extra.items())
    return not is_sent and headers.get(_HEADER, b"").strip().lower() != _KEEP
