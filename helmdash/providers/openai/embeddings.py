"""Embeddings and the list of models in the OpenAI format, both ways.

https://platform.openai.com/docs/api-reference/embeddings and .../models. OpenAI's own SDK asks for
base64 unless told otherwise: little-endian 32-bit floats.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence

from helmdash.core.calls.usage import normalise_usage
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.errors import error_in
from helmdash.providers.openai.http import EMBEDDINGS_PATH, post
from helmdash.providers.openai.read_request import model_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json, to_json, with_members
from helmdash.providers.shared.members import count_at, texts_at
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    EmbeddingReply,
    EmbeddingRequest,
    Json,
    Object,
    WireError,
)

_FLOAT_BYTES = 4


# --- a client's side


def read_embedding_request(body: Object) -> EmbeddingRequest:
    """Read a client's request. Raises BadRequest naming the member."""
    encoding = body.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise BadRequest("encoding_format", "This has to be float or base64.")
    return EmbeddingRequest(
        model=model_of(body),
        inputs=_inputs(body),
        dimensions=count_at(body, "dimensions"),
        encoding=encoding,
    )


def write_embeddings(reply: EmbeddingReply, *, model: str, encoding: str) -> bytes:
    """The vectors as OpenAI would send them; `model` is used where the reply names none."""
    body: dict[str, Json] = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": _write_vector(vector, encoding)}
            for at, vector in enumerate(reply.vectors)
        ],
        "model": reply.model or model,
    }
    usage = _embedding_usage(reply.usage)
    if usage is not None:
        body["usage"] = usage
    return to_json(body)


def _inputs(body: Object) -> tuple[str, ...]:
    """Numbers of tokens, which OpenAI takes too, mean nothing to another model."""
    inputs = texts_at(body, "input")
    if not inputs:
        raise BadRequest("input", "This has to be a string or an array of strings.")
    return inputs


def _write_vector(vector: Sequence[float], encoding: str) -> Json:
    if encoding != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _embedding_usage(raw: Object | None) -> Object | None:
    """OpenAI's embeddings report prompt and total; nothing is completed."""
    if raw is None or "prompt_tokens" in raw:
        return raw
    prompt = normalise_usage(raw).prompt_tokens
    if prompt is None:
        return None
    return {"prompt_tokens": prompt, "total_tokens": prompt}


# --- an upstream's side


def embeddings_request(request: EmbeddingRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """A POST to `/embeddings`; `model` is the upstream's own id."""
    body: dict[str, Json] = {
        "model": model,
        "input": list(request.inputs),
        "encoding_format": request.encoding,
    }
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    return post(endpoint, EMBEDDINGS_PATH, to_json(body))


def pass_embedding_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
) -> HttpRequest:
    """A client's own bytes, but for the model's id."""
    changed = with_members(body, parsed, {"model": model})
    return post(endpoint, EMBEDDINGS_PATH, changed)


def read_embeddings(body: bytes) -> EmbeddingReply:
    """Read the vectors, lists or base64, in the order of the inputs. Never raises."""
    value = read_json(body)
    if not isinstance(value, dict):
        return _failed(WireError(message="The reply is not a JSON object.", code=UNDECODABLE_REPLY))
    error = error_in(value)
    if error is not None:
        return _failed(error)
    try:
        vectors = tuple(_read_vector(item) for item in _in_order(value.get("data")))
    except (TypeError, ValueError, binascii.Error, struct.error):
        return _failed(
            WireError(message="The reply holds no readable vectors.", code=UNDECODABLE_REPLY)
        )
    return EmbeddingReply(
        model=text_in(value, "model"),
        vectors=vectors,
        usage=object_in(value, "usage"),
    )


def _failed(error: WireError) -> EmbeddingReply:
    return EmbeddingReply(model=None, vectors=(), error=error)


def _in_order(data: Json) -> list[Json]:
    if not isinstance(data, list):
        raise TypeError("data")
    numbered = [item.get("index") for item in data if isinstance(item, dict)]
    if len(numbered) == len(data) and all(type(number) is int for number in numbered):
        return sorted(data, key=lambda item: item["index"])
    return data


def _read_vector(item: Json) -> tuple[float, ...]:
    vector = item.get("embedding") if isinstance(item, dict) else None
    if isinstance(vector, str):
        raw = base64.b64decode(vector, validate=True)
        return struct.unpack(f"<{len(raw) // _FLOAT_BYTES}f", raw)
    if not isinstance(vector, list):
        raise TypeError("embedding")
    return tuple(float(number) for number in vector)
