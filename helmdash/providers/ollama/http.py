"""Where an Ollama server is asked, and the headers each request has to have."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.protocols import HttpRequest


def post(endpoint: Endpoint, method: str, body: bytes) -> HttpRequest:
    """A request with a body for one of Ollama's methods."""
    headers = (("content-type", "application/json"), *_headers(endpoint))
    return HttpRequest(path=_path(endpoint, method), headers=headers, body=body)


def get(endpoint: Endpoint, method: str) -> HttpRequest:
    """A GET with the endpoint's credentials."""
    return HttpRequest(path=_path(endpoint, method), headers=_headers(endpoint))


def _path(endpoint: Endpoint, method: str) -> str:
    has_api = endpoint.base_url.rstrip("/").endswith("/api")
    return f"/{method}" if has_api else f"/api/{method}"


def _headers(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """A key is only wanted by ollama.com and by proxies in front of a server."""
    return (("authorization", f"Bearer {endpoint.api_key}"),) if endpoint.api_key else ()
