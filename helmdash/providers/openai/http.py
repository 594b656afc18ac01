"""Requests to an OpenAI-compatible upstream: the key goes where its vendor wants it (quirks)."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.quirks import quirk_of

CHAT_PATH = "/chat/completions"
EMBEDDINGS_PATH = "/embeddings"
MODELS_PATH = "/models"


def post(endpoint: Endpoint, path: str, body: bytes) -> HttpRequest:
    """A POST of JSON with the endpoint's credentials."""
    headers = (("content-type", "application/json"), *_credentials(endpoint))
    return HttpRequest(path=path, headers=headers, body=body)


def get(endpoint: Endpoint, path: str) -> HttpRequest:
    """A GET with the endpoint's credentials."""
    return HttpRequest(path=path, headers=_credentials(endpoint))


def _credentials(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    if endpoint.api_key is None:
        return ()
    header = quirk_of(endpoint).key_header
    key = f"Bearer {endpoint.api_key}" if header == "authorization" else endpoint.api_key
    return ((header, key),)
