"""Endpoint: where calls of a provider's models go, as a value.

Made from an `Upstream` row or from the environment; nothing a caller sends becomes part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

# What stands for a key where none is needed ("x", "EMPTY", "ollama") is no secret, and blotting it
# out would spoil honest text. Real keys have thirty characters and more.
LEAST_SECRET_CHARS = 12

# What lets upstreams of the environment be in a private network; rows have a box of their own.
PRIVATE_SETTING = "HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1"


class ProviderKind(StrEnum):
    """The wire format an upstream speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OLLAMA = "ollama"


class EndpointSource(StrEnum):
    """Where an endpoint is configured."""

    ADMIN = "admin"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One configured upstream, ready to be called.

    `name` is what stands before the slash in `provider/model`. `models` are ids or globs (`gpt-*`);
    empty: the upstream is asked for its list. `read_timeout_s` is how long, in seconds, the first
    byte, and each one after it, may take. `api_key` None: none is sent.
    """

    name: str
    kind: ProviderKind
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    models: tuple[str, ...] = ()
    allow_private: bool = False
    source: EndpointSource = EndpointSource.ADMIN
    read_timeout_s: float = 600.0
