"""Which endpoint of which vendor a path is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from helmdash.providers import anthropic, gemini, ollama, openai, openai_responses
from helmdash.providers.protocols import ClientFormat


class Action(StrEnum):
    """What a path is for, whichever vendor's it is."""

    CHAT = "chat"
    EMBED = "embed"
    COUNT = "count"
    LIST_MODELS = "list_models"
    SHOW_MODEL = "show_model"
    LIST_RUNNING = "list_running"
    VERSION = "version"
    KEPT_REPLY = "kept_reply"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path understood. `model` and `stream` as far as the path says them (Gemini's does).

    `also`: another method than `method` that it takes. `purpose`: what a call by it is for. `kept`:
    the id of a reply that its upstream keeps, and what is asked of it (`resp_1/cancel`).
    """

    client: ClientFormat
    action: Action
    method: str = "POST"
    model: str | None = None
    stream: bool | None = None
    also: str | None = None
    purpose: str = "chat"
    kept: str | None = None


_PREFIXES = ("/v1/", "/v1beta/", "/api/")

_EXACT = {
    "/v1/chat/completions": Route(client=openai.CLIENT, action=Action.CHAT),
    "/v1/responses": Route(client=openai_responses.CLIENT, action=Action.CHAT),
    "/v1/responses/compact": Route(
        client=openai_responses.COMPACT_CLIENT, action=Action.CHAT, purpose="compaction"
    ),
    "/v1/responses/input_tokens": Route(client=openai_responses.CLIENT, action=Action.COUNT),
    "/v1/embeddings": Route(client=openai.CLIENT, action=Action.EMBED),
    "/v1/messages": Route(client=anthropic.CLIENT, action=Action.CHAT),
    "/v1/messages/count_tokens": Route(client=anthropic.CLIENT, action=Action.COUNT),
    "/api/chat": Route(client=ollama.CLIENT, action=Action.CHAT),
    "/api/generate": Route(client=ollama.GENERATE_CLIENT, action=Action.CHAT),
    "/api/tags": Route(client=ollama.CLIENT, action=Action.LIST_MODELS, method="GET"),
    "/api/show": Route(client=ollama.CLIENT, action=Action.SHOW_MODEL),
    "/api/ps": Route(client=ollama.CLIENT, action=Action.LIST_RUNNING, method="GET"),
    "/api/version": Route(client=ollama.CLIENT, action=Action.VERSION, method="GET"),
}
_GEMINI = re.compile(r"/v1(?:beta)?/models/(?P<model>.+):(?P<verb>[A-Za-z]+)")
_GEMINI_VERBS: Mapping[str, tuple[Action, bool | None]] = {
    "generateContent": (Action.CHAT, False),
    "streamGenerateContent": (Action.CHAT, True),
    "countTokens": (Action.COUNT, None),
}
# Ids as OpenAI makes them: nothing that would lead to another address of the upstream.
_KEPT = re.compile(
    r"/v1/responses/(?P<kept>[A-Za-z0-9_-]{1,100}(?:/(?P<what>cancel|input_items))?)"
)
_MODELS = re.compile(r"/(?P<version>v1|v1beta)/models(?:/(?P<model>.+))?/?")
# Other endpoints of the vendors: refused in their own words rather than by a page.
_VENDORS: tuple[tuple[str, ClientFormat], ...] = (
    ("/v1beta/", gemini.CLIENT),
    ("/v1/messages/", anthropic.CLIENT),
    ("/v1/responses/", openai_responses.CLIENT),
    ("/v1/", openai.CLIENT),
)
_OLLAMA_OTHERS = frozenset(
    f"/api/{name}"
    for name in ("embed", "embeddings", "pull", "push", "create", "copy", "delete", "blobs")
)


def find_route(path: str, headers: Mapping[bytes, bytes], query: bytes) -> Route | None:
    """The route of a path; None when it is none of the gateway's."""
    exact = _EXACT.get(path)
    if exact is not None:
        return exact
    if not path.startswith(_PREFIXES):
        return None
    return _gemini(path, query) or _models(path, headers) or _kept(path) or _other(path)


def _gemini(path: str, query: bytes) -> Route | None:
    found = _GEMINI.fullmatch(path)
    if found is None:
        return None
    action, stream = _GEMINI_VERBS.get(found["verb"], (Action.UNKNOWN, None))
    as_array = stream is True and b"alt=sse" not in query.split(b"&")
    client = gemini.ARRAY_CLIENT if as_array else gemini.CLIENT
    return Route(client=client, action=action, model=found["model"], stream=stream)


def _models(path: str, headers: Mapping[bytes, bytes]) -> Route | None:
    """OpenAI, Anthropic and Gemini list models at the same path; their headers tell them apart."""
    found = _MODELS.fullmatch(path)
    if found is None:
        return None
    client = openai.CLIENT
    if found["version"] == "v1beta" or b"x-goog-api-key" in headers:
        client = gemini.CLIENT
    elif b"anthropic-version" in headers:
        client = anthropic.CLIENT
    return Route(client=client, action=Action.LIST_MODELS, method="GET", model=found["model"])


def _kept(path: str) -> Route | None:
    found = _KEPT.fullmatch(path)
    if found is None:
        return None
    return Route(
        client=openai_responses.CLIENT,
        action=Action.KEPT_REPLY,
        method="POST" if found["what"] == "cancel" else "GET",
        also=None if found["what"] else "DELETE",
        kept=found["kept"],
    )


def _other(path: str) -> Route | None:
    if path in _OLLAMA_OTHERS:
        return Route(client=ollama.CLIENT, action=Action.UNKNOWN)
    for prefix, client in _VENDORS:
        if path.startswith(prefix):
            return Route(client=client, action=Action.UNKNOWN)
    return None
