"""Counting the tokens of a request: https://ai.google.dev/api/tokens."""

from __future__ import annotations

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.gemini.http import post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.members import body_of
from helmdash.providers.wire import Object

_INNER = "generateContentRequest"


class GeminiCounting:
    """See protocols.TokenCounting."""

    def count_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """The client's own bytes; only a model that is named inside changes."""
        return post(endpoint, model, "countTokens", _with_inner_model(body, parsed, model))

    def write_count(self, tokens: int) -> bytes:
        """Of all that a request holds; Gemini's word for it."""
        return orjson.dumps({"totalTokens": tokens})


def _with_inner_model(body: bytes, parsed: Object, model: str) -> bytes:
    inner = parsed.get(_INNER)
    if not isinstance(inner, dict) or "model" not in inner:
        return body
    named = model if "/" in model else f"models/{model}"
    return body_of({**parsed, _INNER: {**inner, "model": named}})
