"""Embeddings as Ollama gives them: https://docs.ollama.com/api/embed."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.ollama.errors import find_error, undecodable
from helmdash.providers.ollama.http import post
from helmdash.providers.ollama.reply import usage_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import body_of, without_nones
from helmdash.providers.shared.reported import text_in, vector_of
from helmdash.providers.wire import (
    EmbeddingReply,
    EmbeddingRequest,
)


def read_embeddings(body: bytes) -> EmbeddingReply:
    """Read the answer of `/api/embed`. Never raises."""
    value = read_json(body)
    if not isinstance(value, dict):
        return EmbeddingReply(model=None, vectors=(), error=undecodable())
    error = find_error(value)
    model = text_in(value, "model")
    if error is not None:
        return EmbeddingReply(model=model, vectors=(), error=error)
    rows = value.get("embeddings")
    read = [vector_of(row) for row in rows] if isinstance(rows, list) else [None]
    vectors = tuple(vector for vector in read if vector is not None)
    if len(vectors) != len(read):
        return EmbeddingReply(model=model, vectors=(), error=undecodable())
    return EmbeddingReply(model=model, vectors=vectors, usage=usage_of(value))


def embeddings_request(request: EmbeddingRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Ask for the embeddings of all texts at once."""
    body = without_nones(model=model, input=list(request.inputs), dimensions=request.dimensions)
    return post(endpoint, "embed", body_of(body))
