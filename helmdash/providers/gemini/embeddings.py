"""Embeddings as Gemini gives them: https://ai.google.dev/api/embeddings."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.gemini.errors import error_of, find_error, undecodable
from helmdash.providers.gemini.http import post
from helmdash.providers.gemini.reply import usage_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import body_of, without_nones
from helmdash.providers.shared.reported import vector_of
from helmdash.providers.wire import (
    EmbeddingReply,
    EmbeddingRequest,
    Json,
)


def read_embeddings(body: bytes) -> EmbeddingReply:
    """Read the answer of `batchEmbedContents`. Never raises."""
    value = read_json(body)
    error = find_error(value)
    if error is not None:
        return EmbeddingReply(model=None, vectors=(), error=error_of(error))
    rows = value.get("embeddings") if isinstance(value, dict) else None
    vectors = _vectors(rows) if isinstance(rows, list) else None
    if vectors is None:
        return EmbeddingReply(model=None, vectors=(), error=undecodable())
    return EmbeddingReply(model=None, vectors=vectors, usage=usage_of(value))


def _vectors(rows: list[Json]) -> tuple[tuple[float, ...], ...] | None:
    found: list[tuple[float, ...]] = []
    for row in rows:
        vector = vector_of(row.get("values")) if isinstance(row, dict) else None
        if vector is None:
            return None
        found.append(vector)
    return tuple(found)


def embeddings_request(request: EmbeddingRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Ask for the embeddings of all texts at once."""
    name = model if "/" in model else f"models/{model}"
    asked = [
        without_nones(
            model=name,
            content={"parts": [{"text": text}]},
            outputDimensionality=request.dimensions,
        )
        for text in request.inputs
    ]
    return post(endpoint, model, "batchEmbedContents", body_of({"requests": asked}))
