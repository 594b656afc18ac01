"""A client's own request to Gemini: its bytes stay as they are.

The model stands in the path alone, and usage always comes.
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.gemini.http import chat_method, post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Object


def pass_events(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """Of a client that streams server-sent events."""
    return post(endpoint, model, chat_method(stream=stream), body)


def pass_array(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """The request of a client that streams one JSON array, instead of events, as it came."""
    return post(endpoint, model, chat_method(stream=stream, as_events=False), body)
