"""Where requests to an Anthropic upstream go, and the headers each has to have."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.protocols import HttpRequest

# The only version there is (platform.claude.com/docs/en/api/versioning).
_VERSION = "2023-06-01"


def post(endpoint: Endpoint, path: str, body: bytes) -> HttpRequest:
    """A request with a body. `path` is the API's, without its version."""
    headers = (("content-type", "application/json"), *_credentials(endpoint))
    return HttpRequest(path=_path(endpoint, path), headers=headers, body=body)


def get(endpoint: Endpoint, path: str) -> HttpRequest:
    """A GET with the endpoint's credentials."""
    return HttpRequest(path=_path(endpoint, path), headers=_credentials(endpoint))


def _path(endpoint: Endpoint, path: str) -> str:
    """The path behind the base URL, which may or may not end in /v1."""
    return path if endpoint.base_url.rstrip("/").endswith("/v1") else f"/v1{path}"


def _credentials(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """The version every request has to name, and the key where there is one."""
    version = (("anthropic-version", _VERSION),)
    return (("x-api-key", endpoint.api_key), *version) if endpoint.api_key else version
