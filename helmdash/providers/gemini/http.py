"""Where a Gemini upstream is asked: paths with a model's id in them, and the key's header.

The key goes into `x-goog-api-key`, never into `?key=`: addresses end up in logs.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import HttpRequest

# What stands in ids of models, tuned models and Vertex resources; a `?`, `#` or `%` would let an
# id change the address that is asked.
_ID = re.compile(r"[A-Za-z0-9._:@-]+(?:/[A-Za-z0-9._:@-]+)*")
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")
# Where the base URL names no version: v1 has no tools and no system instruction.
_NEWEST_VERSION = "v1beta"


def model_path(model: str) -> str:
    """A model's resource name, quoted for a path. Raises CannotTranslate for no such name."""
    if _ID.fullmatch(model) is None or any(set(piece) == {"."} for piece in model.split("/")):
        raise CannotTranslate(f"{model[:100]!r} cannot be the id of a Gemini model.")
    if ".." in model:
        raise CannotTranslate(f"{model[:100]!r} cannot be the id of a Gemini model.")
    is_resource = model.startswith(("models/", "tunedModels/")) or "/models/" in model
    # A colon starts the name of a method, so one inside an id has to be quoted.
    return quote(model if is_resource else f"models/{model}", safe="/")


def post(endpoint: Endpoint, model: str, method: str, body: bytes) -> HttpRequest:
    """A request for a method of a model. Raises CannotTranslate for an impossible id."""
    headers = (("content-type", "application/json"), *_credentials(endpoint))
    path = _versioned(endpoint, f"/{model_path(model)}:{method}")
    return HttpRequest(path=path, headers=headers, body=body)


def get(endpoint: Endpoint, path: str) -> HttpRequest:
    """A request without a body. `path` is the API's, without its version."""
    return HttpRequest(path=_versioned(endpoint, path), headers=_credentials(endpoint))


def chat_method(*, stream: bool, as_events: bool = True) -> str:
    """The method that answers a chat; a stream as server-sent events or as one JSON array."""
    if not stream:
        return "generateContent"
    return "streamGenerateContent?alt=sse" if as_events else "streamGenerateContent"


def _versioned(endpoint: Endpoint, path: str) -> str:
    """A path below the API's version: the base URL's own (`…/v1beta`), or the newest."""
    pieces = urlsplit(endpoint.base_url).path.split("/")
    has_version = any(_VERSION.fullmatch(piece) for piece in pieces)
    return path if has_version else f"/{_NEWEST_VERSION}{path}"


def _credentials(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    return (("x-goog-api-key", endpoint.api_key),) if endpoint.api_key else ()
