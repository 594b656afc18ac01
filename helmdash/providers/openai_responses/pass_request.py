"""A client's own Responses request, passed on as it is but for the model's id."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import with_members
from helmdash.providers.wire import Object

RESPONSES_PATH = "/responses"


def pass_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """A client's own bytes, but for the model's id: a stream of this API reports usage unasked."""
    return post(endpoint, RESPONSES_PATH, with_members(body, parsed, {"model": model}))
