"""Endpoint: where calls of a provider's models go, as a value.

Made from an `Upstream` row or from the environment; nothing a caller sends becomes part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

# What stands for a key where none is needed ("x", "EMPTY", "ollama") is no secret, and blotting it
# out would spoil honest text. Real keys have thirty characters and more.
LEAST_SECRET_CHARS = 12

# What lets upstreams of the environment be in a private network; rows have a box of their own.
PRIVATE_SETTING = "HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1"


class ProviderKind(StrEnum):
    """Whose API an upstream has: how it is asked for models, and where its key goes."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OLLAMA = "ollama"


class WireFormat(StrEnum):
    """One API as it is written on the wire: an upstream may speak more than one."""

    CHAT = "chat"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OLLAMA = "ollama"


# What upstreams of a kind may speak, their own format first: what they are spoken to in unless the
# client's own is another of them.
FORMATS_OF_KIND: Mapping[ProviderKind, tuple[WireFormat, ...]] = {
    ProviderKind.OPENAI: (WireFormat.CHAT, WireFormat.RESPONSES),
    ProviderKind.ANTHROPIC: (WireFormat.ANTHROPIC,),
    ProviderKind.GEMINI: (WireFormat.GEMINI,),
    ProviderKind.OLLAMA: (WireFormat.OLLAMA,),
}


class EndpointSource(StrEnum):
    """Where an endpoint is configured."""

    ADMIN = "admin"
    ENVIRONMENT = "environment"


# An upstream's name, kind and address, the key it is asked with, and whether it may be private.
Account: TypeAlias = tuple[str, ProviderKind, str, str | None, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One configured upstream, ready to be called.

    `name` is what stands before the slash in `provider/model`. `models` are ids or globs (`gpt-*`);
    empty: the upstream is asked for its list. `read_timeout_s` is how long, in seconds, the first
    byte, and each one after it, may take. `api_key` None: none is sent. `formats` are those that
    it speaks; empty: its kind's own, and whether it speaks another is found out. `is_shared`: other
    projects may reach the same account, so that what is kept there may be theirs.
    """

    name: str
    kind: ProviderKind
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    models: tuple[str, ...] = ()
    allow_private: bool = False
    source: EndpointSource = EndpointSource.ADMIN
    read_timeout_s: float = 600.0
    formats: tuple[WireFormat, ...] = ()
    is_shared: bool = True

    @property
    def account(self) -> Account:
        """Whom a server tells what it says of its models: what one project's key was told is not
        another's, who may have a row of the same name and address."""
        return self.name, self.kind, self.base_url, self.api_key, self.allow_private

    @property
    def own_format(self) -> WireFormat:
        """The format that it is spoken to in where a client's has to be translated: its kind's own,
        unless it is said to speak another and not that."""
        possible = FORMATS_OF_KIND[self.kind]
        return next(filter(self.may_speak, possible), possible[0])

    def may_speak(self, wire: WireFormat) -> bool:
        """Whether it speaks a format, or nobody has said that it does not."""
        return wire in (self.formats or FORMATS_OF_KIND[self.kind])
