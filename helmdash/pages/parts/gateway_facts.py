"""What the gateway takes and tells, as its page says it (docs/wire.md has the same in full)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A name on the wire, and what it means."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Mode:
    """A budget mode: what becomes of a request that is larger than its model's budget."""

    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Served:
    """One endpoint, and the API it belongs to."""

    method: str
    path: str
    api: str
    purpose: str


HEADERS_IN = (
    Fact("x-helmdash-conversation", "The conversation this call belongs to."),
    Fact("x-helmdash-parent", "The conversation that this one is a part of, as a sub-agent's is."),
    Fact("x-helmdash-lane", "side: a call beside its conversation, which stays as it is."),
    Fact("x-helmdash-pack", "The pack the call is made for; kept with it."),
    Fact("x-helmdash-purpose", "What the call is for, such as chat or plan; kept with it."),
    Fact("x-helmdash-correlation-id", "An id of yours that ties calls together; kept with it."),
    Fact("x-helmdash-project", "Must be the project of the key, when it is given."),
    Fact("x-helmdash-budget", "observe, warn or enforce for this call; else as the project says."),
    Fact("x-helmdash-remediation", "on or off: care for this call; else as the project says."),
    Fact(
        "x-helmdash-ollama-context",
        "keep: replies of Ollama's /api/generate keep their array context.",
    ),
)
HEADERS_OUT = (
    Fact("x-helmdash-call-id", "The id of the call on these pages and in the API."),
    Fact("x-helmdash-level", "Its health level; unknown on a stream, whose usage comes last."),
    Fact("x-helmdash-overhead-ms", "What HelmDash itself took until the response began."),
    Fact("x-helmdash-budget-warning", "The estimate and the budget, where the request is larger."),
    Fact(
        "x-helmdash-remediation",
        "What was done before the call: none, guide, record_prompt or clear. "
        "This and the next three come only where care is on.",
    ),
    Fact("x-helmdash-conversation", "Where the call belongs, as far as that is known before it."),
    Fact("x-helmdash-round", "The round of that conversation; each fresh start opens one."),
    Fact("x-helmdash-countdown", "Generations left before a fresh start."),
    Fact("x-helmdash-estimated", "1 where a token count is our estimate, not the provider's."),
)
MODES = (
    Mode("observe", "The request is sent and recorded. Its level tells how full the model was."),
    Mode(
        "warn",
        "It is sent, and the response carries x-helmdash-budget-warning with the estimate.",
    ),
    Mode(
        "enforce",
        "It is refused with context_length_exceeded in the client's own format. "
        "The provider is not called, and the refusal is recorded.",
    ),
)
ENDPOINTS = (
    Served("POST", "/v1/chat/completions", "OpenAI", "chat, whole and streamed"),
    Served("POST", "/v1/responses", "OpenAI", "chat as Codex speaks it, whole and streamed"),
    Served("POST", "/v1/responses/compact", "OpenAI", "sum a history up"),
    Served("POST", "/v1/responses/input_tokens", "OpenAI", "count tokens"),
    Served("GET", "/v1/responses/ID", "OpenAI", "a response that its upstream keeps; also DELETE"),
    Served("POST", "/v1/responses/ID/cancel", "OpenAI", "cancel one in the background"),
    Served("GET", "/v1/responses/ID/input_items", "OpenAI", "what it was asked"),
    Served("POST", "/v1/embeddings", "OpenAI", "embeddings"),
    Served("GET", "/v1/models", "OpenAI", "the models of all upstreams"),
    Served("POST", "/v1/messages", "Anthropic", "messages, whole and streamed"),
    Served("POST", "/v1/messages/count_tokens", "Anthropic", "count tokens"),
    Served("POST", "/api/chat", "Ollama", "chat, whole and streamed"),
    Served("POST", "/api/generate", "Ollama", "generate, whole and streamed"),
    Served("GET", "/api/tags", "Ollama", "the models of all upstreams"),
    Served("POST", "/api/show", "Ollama", "what is known of a model"),
    Served("POST", "/v1beta/models/MODEL:generateContent", "Gemini", "generate; also under /v1"),
    Served("POST", "/v1beta/models/MODEL:streamGenerateContent", "Gemini", "generate, streamed"),
    Served("POST", "/v1beta/models/MODEL:countTokens", "Gemini", "count tokens"),
)
