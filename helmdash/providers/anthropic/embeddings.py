"""Anthropic has no embeddings: what is said to who asks for some."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import UNDECODABLE_REPLY, EmbeddingReply, EmbeddingRequest, WireError

_NONE = "Anthropic has no embeddings; send them to a model of another upstream."


def embeddings_request(request: EmbeddingRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Raises CannotTranslate: there are none."""
    raise CannotTranslate(_NONE)


def read_embeddings(body: bytes) -> EmbeddingReply:
    """There are none to read: the error says so."""
    error = WireError(message=_NONE, code=UNDECODABLE_REPLY)
    return EmbeddingReply(model=None, vectors=(), error=error)
