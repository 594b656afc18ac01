"""Which address a client meant that asked at one which is not there.

A base URL without `/v1`, with `/v1` twice, or as another product has it is the first thing that
goes wrong when somebody points a client at a gateway. What the client is told has to be in its own
format, or its SDK shows something else; so the format is guessed from the path and the headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_PATH_CHARS = 120
# Whatever looks like a key or an id of somebody's: paths are shown on a page.
# Long words of small letters only are names (oauth-protected-resource).
_SECRET = re.compile(
    r"(?=[a-z_.~+=-]*[A-Z0-9])[A-Za-z0-9_.~+=-]{24,}|(?:sk|hd|key|token)[-_][A-Za-z0-9_-]{6,}"
)


class KnockReason(StrEnum):
    """Why a request was turned away at the door."""

    ADDRESS = "address"
    """There is nothing at its address."""
    KEY = "key"
    """It brought no key, or none of ours."""


class Dialect(StrEnum):
    """The format a lost client most likely reads."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OLLAMA = "ollama"
    PROBLEM = "problem"
    """None of the vendors': application/problem+json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Advice:
    # What the client's own setting is called, and what it has to be below our address.
    setting: str
    below: str
    served: str
    # What a path may end in, and where that is here.
    endings: Mapping[str, str]


_OPENAI = {
    "chat/completions": "/v1/chat/completions",
    "embeddings": "/v1/embeddings",
    "models": "/v1/models",
    "responses": "/v1/responses",
    "responses/compact": "/v1/responses/compact",
    "responses/input_tokens": "/v1/responses/input_tokens",
}
# What people write below our address where `/api/v1` is missing.
_OWN_WORDS = tuple(
    "assemble budgets budgets/resolve calls calls/batch calls/export calls/reconcile catalogs "
    "conversations decode fit my-defaults my-plans plan plans rank route".split()
)
_ADVICE: Mapping[Dialect, _Advice] = {
    Dialect.OPENAI: _Advice(
        setting="base_url",
        below="/v1",
        served="/v1/chat/completions, /v1/responses, /v1/embeddings and /v1/models",
        endings=_OPENAI,
    ),
    Dialect.ANTHROPIC: _Advice(
        setting="base_url",
        below="",
        served="/v1/messages, /v1/messages/count_tokens and /v1/models",
        endings={
            "messages": "/v1/messages",
            "messages/count_tokens": "/v1/messages/count_tokens",
            "models": "/v1/models",
        },
    ),
    Dialect.GEMINI: _Advice(
        setting="base_url",
        below="",
        served="generateContent, streamGenerateContent and countTokens of /v1beta/models/MODEL, "
        "and /v1beta/models",
        endings={"models": "/v1beta/models"},
    ),
    Dialect.OLLAMA: _Advice(
        setting="host",
        below="",
        served="/api/chat, /api/generate, /api/tags, /api/show, /api/ps and /api/version",
        endings={f"api/{word}": f"/api/{word}" for word in ("chat", "generate", "tags", "show")},
    ),
    Dialect.PROBLEM: _Advice(
        setting="base_url",
        below="/v1",
        served="its API below /api/v1 (listed at /api/v1/docs), MCP at /mcp, and models at /v1",
        endings={word: f"/api/v1/{word}" for word in _OWN_WORDS},
    ),
}
_GEMINI_VERB = re.compile(r":(?:[a-z]+[A-Z][A-Za-z]*)$")
_GEMINI_VERSIONS = frozenset({"v1beta", "v1alpha", "v1beta1", "v1beta2", "v1beta3", "v1internal"})
_OPENAI_WORDS = frozenset(
    "assistants audio batches chat completions embeddings files fine_tuning images models "
    "moderations openai organization realtime rerank responses threads uploads vector_stores "
    "videos".split()
)


def dialect_of(path: str, headers: Mapping[bytes, bytes]) -> Dialect:
    """The format that the sender of a request most likely reads."""
    segments = [segment for segment in path.lower().split("/") if segment]
    words = frozenset(segments)
    # Gemini's own address for OpenAI's SDKs.
    if segments[:2] == ["v1beta", "openai"]:
        return Dialect.OPENAI
    if _GEMINI_VERB.search(path) or words & _GEMINI_VERSIONS or b"x-goog-api-key" in headers:
        return Dialect.GEMINI
    if words & {"messages", "anthropic"} or b"anthropic-version" in headers:
        return Dialect.ANTHROPIC
    if segments[:2] == ["api", "v1"] and not words & _OPENAI_WORDS:
        return Dialect.PROBLEM
    if words & _OPENAI_WORDS and not _is_ollama(segments):
        return Dialect.OPENAI
    if words & {"api", "ollama"}:
        return Dialect.OLLAMA
    if "v1" in words or b"openai" in headers.get(b"user-agent", b"").lower():
        return Dialect.OPENAI
    return Dialect.PROBLEM


def advice(dialect: Dialect, path: str, base: str) -> str:
    """What to tell the client; `base` is our own address, such as http://127.0.0.1:8000."""
    told = _ADVICE[dialect]
    here = f"There is nothing at {printable(path)}."
    use = f"use {told.setting} {base}{told.below}"
    right = _right_path(told.endings, path)
    if right is not None and dialect is Dialect.PROBLEM:
        return f"{here} The endpoint is {base}{right}."
    if right is not None:
        return f"{here} The endpoint is {right}: {use}."
    return f"{here} HelmDash serves {told.served}; {use}."


def printable(path: str) -> str:
    """A path as it may be shown and kept: short, plain, and without what may be a secret."""
    path = path.partition("?")[0][:1000]
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in path)
    plain = _SECRET.sub("…", plain)
    return plain if len(plain) <= _PATH_CHARS else plain[: _PATH_CHARS - 1] + "…"


def _right_path(endings: Mapping[str, str], path: str) -> str | None:
    asked = path.rstrip("/").lower()
    found = [ending for ending in endings if asked.endswith(f"/{ending}")]
    return endings[max(found, key=len)] if found else None


def _is_ollama(segments: list[str]) -> bool:
    """Ollama's own words below /api, of which OpenAI has some, too."""
    return segments[-2:-1] == ["api"]
