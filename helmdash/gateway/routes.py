"""Which endpoint of which vendor a path is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from helmdash.core.upstreams.endpoints import ProviderKind


class Action(StrEnum):
    """What a client wants."""

    CHAT = "chat"
    EMBED = "embed"
    COUNT = "count"
    LIST_MODELS = "list_models"
    SHOW_MODEL = "show_model"
    LIST_RUNNING = "list_running"
    VERSION = "version"
    UNKNOWN = "unknown"


class Shape(StrEnum):
    """The wire format a client speaks. Gemini and Ollama have two each."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    GEMINI_ARRAY = "gemini_array"  # streams one JSON array, for clients that do not ask for events
    OLLAMA = "ollama"
    OLLAMA_GENERATE = "ollama_generate"

    @property
    def kind(self) -> ProviderKind:
        """The vendor whose format it is."""
        return ProviderKind(self.value.partition("_")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path understood. `model` and `stream` as far as the path says them (Gemini's does)."""

    shape: Shape
    action: Action
    method: str = "POST"
    model: str | None = None
    stream: bool | None = None


_PREFIXES = ("/v1/", "/v1beta/", "/api/")

_EXACT = {
    "/v1/chat/completions": Route(shape=Shape.OPENAI, action=Action.CHAT),
    "/v1/embeddings": Route(shape=Shape.OPENAI, action=Action.EMBED),
    "/v1/messages": Route(shape=Shape.ANTHROPIC, action=Action.CHAT),
    "/v1/messages/count_tokens": Route(shape=Shape.ANTHROPIC, action=Action.COUNT),
    "/api/chat": Route(shape=Shape.OLLAMA, action=Action.CHAT),
    "/api/generate": Route(shape=Shape.OLLAMA_GENERATE, action=Action.CHAT),
    "/api/tags": Route(shape=Shape.OLLAMA, action=Action.LIST_MODELS, method="GET"),
    "/api/show": Route(shape=Shape.OLLAMA, action=Action.SHOW_MODEL),
    "/api/ps": Route(shape=Shape.OLLAMA, action=Action.LIST_RUNNING, method="GET"),
    "/api/version": Route(shape=Shape.OLLAMA, action=Action.VERSION, method="GET"),
}
_GEMINI = re.compile(r"/v1(?:beta)?/models/(?P<model>.+):(?P<verb>[A-Za-z]+)")
_GEMINI_VERBS: Mapping[str, tuple[Action, bool | None]] = {
    "generateContent": (Action.CHAT, False),
    "streamGenerateContent": (Action.CHAT, True),
    "countTokens": (Action.COUNT, None),
}
_MODELS = re.compile(r"/(?P<version>v1|v1beta)/models(?:/(?P<model>.+))?/?")
# Other endpoints of the four vendors: refused in their own words rather than by a page.
_VENDORS: tuple[tuple[str, Shape], ...] = (
    ("/v1beta/", Shape.GEMINI),
    ("/v1/messages/", Shape.ANTHROPIC),
    ("/v1/", Shape.OPENAI),
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
    return _gemini(path, query) or _models(path, headers) or _other(path)


def _gemini(path: str, query: bytes) -> Route | None:
    found = _GEMINI.fullmatch(path)
    if found is None:
        return None
    action, stream = _GEMINI_VERBS.get(found["verb"], (Action.UNKNOWN, None))
    as_array = stream is True and b"alt=sse" not in query.split(b"&")
    shape = Shape.GEMINI_ARRAY if as_array else Shape.GEMINI
    return Route(shape=shape, action=action, model=found["model"], stream=stream)


def _models(path: str, headers: Mapping[bytes, bytes]) -> Route | None:
    """OpenAI, Anthropic and Gemini list models at the same path; their headers tell them apart."""
    found = _MODELS.fullmatch(path)
    if found is None:
        return None
    shape = Shape.OPENAI
    if found["version"] == "v1beta" or b"x-goog-api-key" in headers:
        shape = Shape.GEMINI
    elif b"anthropic-version" in headers:
        shape = Shape.ANTHROPIC
    return Route(shape=shape, action=Action.LIST_MODELS, method="GET", model=found["model"])


def _other(path: str) -> Route | None:
    if path in _OLLAMA_OTHERS:
        return Route(shape=Shape.OLLAMA, action=Action.UNKNOWN)
    for prefix, shape in _VENDORS:
        if path.startswith(prefix):
            return Route(shape=shape, action=Action.UNKNOWN)
    return None
