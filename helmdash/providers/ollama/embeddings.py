"""Embeddings as Ollama gives them: https://docs.ollama.com/api/embed."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.ollama.errors import find_error, undecodable
from helmdash.providers.ollama.http import post
from helmdash.providers.ollama.reply import text_of, usage_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import body_of, without_nones
from helmdash.providers.wire import (
    EmbeddingReply,
    EmbeddingRequest,
    Json,
)


def read_embeddings(body: bytes) -> EmbeddingReply:
    """Read the answer of `/api/embed`. Never raises."""
    value = read_json(body)
    if not isinstance(value, dict):
        return EmbeddingReply(model=None, vectors=(), error=undecodable())
    error = find_error(value)
    model = text_of(value, "model")
    if error is not None:
        return EmbeddingReply(model=model, vectors=(), error=error)
    rows = value.get("embeddings")
    if not isinstance(rows, list) or not all(map(_is_vector, rows)):
        return EmbeddingReply(model=model, vectors=(), error=undecodable())
    vectors = tuple(tuple(map(float, row)) for row in rows)
    return EmbeddingReply(model=model, vectors=vectors, usage=usage_of(value))


def _is_vector(row: Json) -> bool:
    return isinstance(row, list) and all(
        isinstance(item, int | float) and not isinstance(item, bool) for item in row
    )


def embeddings_request(request: EmbeddingRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Ask for the embeddings of all texts at once."""
    body = without_nones(model=model, input=list(request.inputs), dimensions=request.dimensions)
    return post(endpoint, "embed", body_of(body))
