"""A client's own request to an Ollama server: only the model's id is changed, in its place."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.ollama.http import post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import with_members
from helmdash.providers.shared.members import body_of
from helmdash.providers.wire import (
    Json,
    Object,
)


def pass_chat(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """Of a client that asks `/api/chat`."""
    return post(endpoint, "chat", _named(body, parsed, model, stream))


def pass_generate(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """Of a client that asks `/api/generate`."""
    return post(endpoint, "generate", _named(body, parsed, model, stream))


def _named(body: bytes, parsed: Object, model: str, stream: bool) -> bytes:
    changes: dict[str, Json] = {"model": model}
    if parsed.get("stream", True) is not stream:
        changes["stream"] = stream
    if _has_doubles(parsed, changes):
        return body_of(_without_doubles(parsed, ("model", "stream")) | changes)
    return with_members(body, parsed, changes)


def _has_doubles(parsed: Object, changes: Object) -> bool:
    """Whether a name stands there in other letters, too: Go would take `Model` for `model`."""
    names = {"model", "stream", *changes}
    return any(name not in names and name.casefold() in names for name in parsed)


def _without_doubles(parsed: Object, names: tuple[str, ...]) -> dict[str, Json]:
    return {
        name: value
        for name, value in parsed.items()
        if name in names or name.casefold() not in names
    }
