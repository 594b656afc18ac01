"""Where each fact of a call may stand, best first, and how it is read in every dialect.

The names are those of the GenAI semantic conventions of every version, OpenInference, OpenLLMetry,
Langfuse, the AI SDK, LangSmith, MLflow, pydantic-ai and the agents' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from helmdash.core.agents.names import agent_name, foreign_name
from helmdash.core.calls.capture import Status
from helmdash.core.calls.lanes import Lane
from helmdash.core.telemetry.values import (
    Attributes,
    Exporter,
    count_of,
    first_present,
    parsed,
    word_of,
)

MODEL: Final = (
    "gen_ai.request.model",
    "llm.request.model_name",
    "llm.model_name",
    "ai.model.id",
    "mlflow.llm.model",
    "langfuse.observation.model.name",
    "model",
    "model_name",
)
UPSTREAM_MODEL: Final = (
    "gen_ai.response.model",
    "llm.response.model_name",
    "llm.response.model",
    "ai.response.model",
)
PROVIDER: Final = (
    "gen_ai.provider.name",
    "gen_ai.system",
    "llm.provider",
    "llm.system",
    "ai.model.provider",
    "mlflow.llm.provider",
)
CONVERSATION: Final = (
    "langfuse.session.id",
    "session.id",
    "gen_ai.conversation.id",
    "conversation.id",
    "ai.telemetry.metadata.sessionId",
    "langsmith.trace.session_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "mlflow.trace.session",
    "thread.id",
)
AGENT: Final = ("agent_id", "gen_ai.agent.id", "gen_ai.agent.name", "agent.name")
FINISH: Final = (
    "gen_ai.response.finish_reasons",
    "llm.finish_reason",
    "llm.response.finish_reason",
    "llm.response.stop_reason",
    "gen_ai.response.finish_reason",
    "ai.response.finishReason",
    "stop_reason",
)
AGENT_CHARS: Final = 200
# As reports have them (helmdash.doors.bodies.fields): characters of an id, and a column's range.
_ID_CHARS = 128
_MOST_ATTEMPTS = 2**31 - 1
# 30 years, as of reports (helmdash.doors.bodies.fields).
_MOST_MS = 1e12
# How programs name an end that somebody wanted; no dialect has a word for it.
_CANCELLED = ("cancelled", "canceled", "aborterror", "aborted", "generatorexit")
# What the conventions and the AI SDK call who runs a model, in the words that budgets know it by.
# Longest beginnings first.
_PROVIDERS = (
    ("gcp.vertex", "vertex_ai"),
    ("google.vertex", "vertex_ai"),
    ("gcp.", "google"),
    ("google.", "google"),
    ("azure.", "azure"),
    ("az.", "azure"),
    ("aws.bedrock", "bedrock"),
    ("amazon-bedrock", "bedrock"),
    ("mistral_ai", "mistral"),
    ("mistralai", "mistral"),
    ("moonshot_ai", "moonshotai"),
    ("x_ai", "x-ai"),
    ("xai", "x-ai"),
    ("vertexai", "vertex_ai"),
)
# What a service is called by nobody's choice.
_UNNAMED = "unknown_service"
_CLIENTS: Mapping[str, str] = {
    "claude-code": "claude-code",
    "codex_cli_rs": "codex",
    "codex-cli": "codex",
    "codex-app-server": "codex",
    "codex_exec": "codex",
    "gemini-cli": "gemini-cli",
    "qwen-code": "qwen-code",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call belongs. None: not told."""

    conversation: str | None = None
    parent: str | None = None
    lane: Lane | None = None
    purpose: str | None = None


def placed(session: str | None, agent: str | None = None) -> Place:
    """The place of a session's call; a named agent's conversation is one of its own, so that its
    small prompt never makes the session look empty."""
    if session is None:
        return Place()
    own = foreign_name(session)
    name = agent_name(session, agent)
    return Place(conversation=name, parent=own if name != own else None)


def word_in(told: Attributes, names: Iterable[str], most: int) -> str | None:
    """The first of these that is told, as one line; MLflow writes each value as JSON, a text with
    its quotes.

    >>> word_in({"mlflow.llm.model": '"gpt-4o"'}, MODEL, 255)
    'gpt-4o'
    """
    value = first_present(told, names)
    if isinstance(value, str) and value.startswith('"'):
        value = parsed(value)
    return word_of(value, most)


def provider_of(told: Attributes) -> str | None:
    """Who runs the model, in a word of ours where there is one.

    >>> provider_of({"gen_ai.system": "az.ai.openai"})
    'azure'
    >>> provider_of({"ai.model.provider": "openai.chat"})
    'openai'
    """
    name = (word_in(told, PROVIDER, 64) or "").lower()
    for beginning, ours in _PROVIDERS:
        if name.startswith(beginning):
            return ours
    return name.partition(".")[0] or None


def finish_reason_of(told: Attributes) -> str | None:
    """How the reply ended, in the provider's own word. Of several the last counts: one for each
    piece of a stream (Gemini CLI), or one for each choice."""
    value = parsed(first_present(told, FINISH))
    if value is None:
        messages = parsed(told.get("gen_ai.output.messages"))
        newest = messages[-1] if isinstance(messages, list) and messages else None
        value = newest.get("finish_reason") if isinstance(newest, Mapping) else None
    if isinstance(value, list):
        value = value[-1] if value else None
    return word_of(value, 64)


def status_of(
    kind: str | None, *, is_error: bool, http_status: int | None
) -> tuple[Status, str | None, int | None]:
    """How a call ended, its error's own word, and its HTTP status. kind: the type of its error."""
    if not is_error and (http_status or 0) < 400:
        return "success", None, http_status
    low = (kind or "").lower()
    is_cancelled = any(word in low for word in _CANCELLED)
    return ("cancelled" if is_cancelled else "error"), kind, http_status


def call_id(name: str) -> str:
    """An id of a call, cut to what a report may have, as readers of transcripts cut it; different
    ids stay different."""
    plain = word_of(name, 4096) or ""
    if plain == name and len(name) <= _ID_CHARS:
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{plain[: _ID_CHARS - 33].rstrip()}={digest}"


def attempt_of(value: object) -> int:
    """Which try at a call it was, from 1 on; 1 where nothing usable is told."""
    number = count_of(value) or 1
    return number if number <= _MOST_ATTEMPTS else 1


def http_status_of(value: object) -> int | None:
    """An HTTP status; None for any other number."""
    status = count_of(value)
    return status if status is not None and 100 <= status <= 599 else None


def whole_ms(milliseconds: float | None) -> int | None:
    """A duration as calls keep it; None where it is none."""
    if milliseconds is None or not 0 <= milliseconds <= _MOST_MS:
        return None
    return round(milliseconds)


def client_of_source(source: Exporter, told: Attributes) -> tuple[str | None, str | None]:
    """The program that made the call, and its version, by the service it is told to be."""
    service = (word_of(source.resource.get("service.name"), 64) or "").lower()
    version = word_of(told.get("app.version") or source.resource.get("service.version"), 32)
    if source.scope.startswith("com.anthropic.claude_code"):
        return "claude-code", version
    name = _CLIENTS.get(service, service)
    if not name or name.startswith(_UNNAMED):
        return None, None
    # Gemini CLI tells the version of Node there.
    return name, None if name == "gemini-cli" else version
