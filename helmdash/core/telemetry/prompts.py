"""The true total of a prompt: whether an exporter's input count has the cached tokens inside.

No two dialects agree, and nothing in a span says which holds: a library's name does, or numbers
that cannot be otherwise. A reader that subtracts blindly shows 0, one that adds blindly counts
twice. So each total comes with the rule that decided, which is kept with the call.

Sources: the GenAI semantic conventions (input includes the cache from 1.40 on), the instrumentors'
own code (OpenInference, OpenLLMetry, pydantic-ai, Langfuse, AI SDK), the vendors' documentation
(Claude Code, Codex, Gemini CLI).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from helmdash.core.telemetry.values import (
    Attributes,
    Exporter,
    count_of,
    first_count,
    mapping_of,
)

# Stored with every call. Another reading of the same attributes is a new version.
TELEMETRY_VERSION = "telemetry-1"

_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read",
    "llm.token_count.prompt_details.cache_read",
    "llm.usage.cache_read_input_tokens",
)
_WRITTEN = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "gen_ai.usage.details.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_creation",
    "llm.token_count.prompt_details.cache_write",
    "llm.usage.cache_creation_input_tokens",
)
_DOTTED = frozenset(
    {
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
    }
)
_PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "output_tokens",
    "output_token_count",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "llm.token_count.completion_details.reasoning",
    "ai.usage.reasoningTokens",
    "ai.usage.outputTokenDetails.reasoningTokens",
    "codex.usage.reasoning_output_tokens",
)
_TOTAL = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total")
# The conventions from 1.40 on.
_CONVENTIONS = "gen_ai_1_40"
# Who reports the cache beside the input: Anthropic's own API, and Bedrock after it.
_BESIDE = ("anthropic", "bedrock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of one call. prompt: the true total, tokens of the cache included; rule: what decided
    that. None: not told."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    rule: str = ""

    def to_usage(self) -> dict[str, object] | None:
        """As a report's `usage`; None where nothing is told."""
        if not (self.prompt or self.completion):
            return None
        told = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "cached_tokens": self.cached,
            "cache_write_tokens": self.cache_write,
            "reasoning_tokens": self.reasoning,
            "rule": self.rule,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The counts as they stand there. total: of prompt and completion. is_beside: what the dialect
    says of the cache; None: nothing."""

    prompt: int | None
    read: int | None = None
    written: int | None = None
    completion: int | None = None
    total: int | None = None
    reasoning: int | None = None
    dialect: str = ""
    is_beside: bool | None = None


def counts_of(attributes: Attributes, source: Exporter, *, provider: str) -> Counts:
    """The tokens of a span, or of a record that uses the same names. provider: who ran the model,
    as far as it is told. Never raises."""
    details = attributes.get("langfuse.observation.usage_details")
    if details is not None:
        return _of_langfuse(mapping_of(details))
    return _settled(_told(attributes, source, provider.lower()))


def beside(
    prompt: int | None, read: int | None, written: int | None, *, completion: int | None, rule: str
) -> Counts:
    """Counts of a dialect that leaves the cache out of the input: all three are added."""
    told = _Told(
        prompt=prompt,
        read=read,
        written=written,
        completion=completion,
        dialect=rule,
        is_beside=True,
    )
    return _settled(told)


def _told(attributes: Attributes, source: Exporter, provider: str) -> _Told:
    told = _Told(
        prompt=first_count(attributes, _PROMPT),
        read=first_count(attributes, _READ),
        written=first_count(attributes, _WRITTEN),
        completion=first_count(attributes, _COMPLETION),
        total=first_count(attributes, _TOTAL),
        reasoning=first_count(attributes, _REASONING),
    )
    scope = source.scope.lower()
    if is_claude_code(attributes, source):
        return replace(
            told,
            prompt=count_of(attributes.get("input_tokens")),
            read=count_of(attributes.get("cache_read_tokens")),
            written=count_of(attributes.get("cache_creation_tokens")),
            completion=first_count(attributes, ("output_tokens", *_COMPLETION)),
            dialect="claude_code",
            is_beside=True,
        )
    if scope == "ai" or "ai.operationId" in attributes or "ai.model.id" in attributes:
        return _of_ai_sdk(told, attributes, provider)
    if attributes.get("llm.token_count.prompt") is not None:
        dialect, is_beside = _of_openinference(scope)
        prompt = count_of(attributes["llm.token_count.prompt"])
        return replace(told, prompt=prompt, dialect=dialect, is_beside=is_beside)
    mlflow = mapping_of(attributes.get("mlflow.chat.tokenUsage"))
    if mlflow:
        return _of_mlflow(told, mlflow, provider, attributes.get("mlflow.message.format"))
    dialect, is_beside = _of_gen_ai(attributes, scope)
    return replace(told, dialect=dialect, is_beside=is_beside)


def _of_openinference(scope: str) -> tuple[str, bool | None]:
    if "claude_agent_sdk" in scope.replace("-", "_"):
        return "openinference_claude_agent_sdk", True
    if "langchain" in scope:
        return "openinference_langchain", None  # right but for Bedrock, whose numbers tell it
    return "openinference", False


def _of_mlflow(told: _Told, usage: Attributes, provider: str, shape: object) -> _Told:
    """The provider's own counts; Anthropic's total is the sum of input and output, without the
    cache. shape: which provider's messages the span holds."""
    total = first_count(usage, ("total_tokens",))
    is_beside = any(name in f"{provider} {shape}".lower() for name in _BESIDE)
    return replace(
        told,
        prompt=first_count(usage, ("input_tokens", "prompt_tokens")),
        completion=first_count(usage, ("output_tokens", "completion_tokens")),
        read=first_count(usage, ("cache_read_input_tokens", "cached_tokens")),
        written=first_count(usage, ("cache_creation_input_tokens",)),
        total=total,
        dialect="mlflow",
        is_beside=is_beside or None,
    )


def _of_gen_ai(attributes: Attributes, scope: str) -> tuple[str, bool | None]:
    """The dialect of a span with `gen_ai.usage.*`, and what it says of the cache."""
    if scope.startswith("pydantic-ai"):
        return "pydantic_ai", False
    if scope.startswith("codex") or "codex.usage.reasoning_output_tokens" in attributes:
        return "codex", False
    if scope.startswith("gcp.vertex.agent"):
        return "gcp_vertex_agent", False
    if scope.startswith("langsmith") or any(name.startswith("langsmith.") for name in attributes):
        return "langsmith", False
    if scope.startswith("opentelemetry.instrumentation."):
        return "openllmetry", False
    if not _DOTTED.isdisjoint(attributes):
        return _CONVENTIONS, None  # SHOULD be inside
    return "gen_ai", None


def _of_ai_sdk(told: _Told, attributes: Attributes, provider: str) -> _Told:
    details = "ai.usage.inputTokenDetails."
    names = ("ai.usage.inputTokens", "ai.usage.promptTokens", *_PROMPT)
    read = first_count(
        attributes, (details + "cacheReadTokens", "ai.usage.cachedInputTokens", *_READ)
    )
    written = first_count(attributes, (details + "cacheWriteTokens", *_WRITTEN))
    told = replace(told, prompt=first_count(attributes, names), read=read, written=written)
    if any(name.startswith(details) for name in attributes):
        return replace(told, dialect="ai_sdk_6", is_beside=False)
    who = f"{provider} {attributes.get('ai.model.provider', '')}".lower()
    if not any(name in who for name in _BESIDE):
        return replace(told, dialect="ai_sdk_5", is_beside=False)
    of_read, of_written = _of_provider(attributes)
    return replace(
        told,
        read=of_read if read is None else read,
        written=of_written if written is None else written,
        dialect="ai_sdk_5_beside",
        is_beside=True,
    )


def _of_provider(attributes: Attributes) -> tuple[int | None, int | None]:
    """Tokens read from the cache and written to it, as the AI SDK hands on what a provider says."""
    told = mapping_of(attributes.get("ai.response.providerMetadata"))
    read: int | None = None
    written: int | None = None
    for name in _BESIDE:
        own = mapping_of(told.get(name))
        for place in (mapping_of(own.get("usage")), own):
            if read is None:
                read = first_count(
                    place, ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadTokens")
                )
            if written is None:
                written = first_count(
                    place,
                    (
                        "cache_creation_input_tokens",
                        "cacheCreationInputTokens",
                        "cacheWriteInputTokens",
                        "cacheWriteTokens",
                    ),
                )
    return read, written


def _of_langfuse(details: Mapping[str, object]) -> Counts:
    """Langfuse's buckets exclude each other: the input is the sum of all that are called so."""
    inputs = {
        name: count
        for name, value in details.items()
        if "input" in name.lower() and (count := count_of(value)) is not None
    }
    outputs = [
        count
        for name, value in details.items()
        if "output" in name.lower() and (count := count_of(value)) is not None
    ]
    read = sum(count for name, count in inputs.items() if _is_read(name))
    written = sum(count for name, count in inputs.items() if _is_written(name))
    # What the provider said of the whole prompt may have a bucket of the cache beside it.
    is_raw = first_count(details, _WHOLE_PROMPT) is not None
    if inputs and not (is_raw and all(map(_is_of_cache, inputs))):
        return Counts(
            prompt=sum(inputs.values()),
            completion=sum(outputs) if outputs else None,
            cached=read if any(map(_is_read, inputs)) else None,
            cache_write=written if any(map(_is_written, inputs)) else None,
            reasoning=first_count(details, ("output_reasoning_tokens", "output_reasoning")),
            rule="langfuse",
        )
    # What the provider said, handed on as it came.
    inside = mapping_of(details.get("prompt_tokens_details"))
    told = _Told(
        prompt=first_count(details, _WHOLE_PROMPT),
        read=first_count(inside, ("cached_tokens",))
        or first_count(details, ("cached_content_token_count",))
        or read
        or None,
        written=written or None,
        completion=first_count(
            details, ("completion_tokens", "completionTokens", "candidates_token_count")
        ),
        total=first_count(details, ("total_tokens", "totalTokens", "total")),
        dialect="langfuse_raw",
    )
    return _settled(told)


_WHOLE_PROMPT = ("prompt_tokens", "promptTokens", "prompt_token_count")


def _is_of_cache(name: str) -> bool:
    return _is_read(name) or _is_written(name)


def _is_read(name: str) -> bool:
    low = name.lower()
    return "cached" in low or "cache_read" in low


def _is_written(name: str) -> bool:
    low = name.lower()
    return "cache_creation" in low or "cache_write" in low


def _settled(told: _Told) -> Counts:
    """The total, by what the dialect says, unless the numbers say that it cannot be so."""
    prompt, cache = told.prompt, (told.read or 0) + (told.written or 0)
    is_beside, rule = told.is_beside, told.dialect
    if prompt is not None and cache and is_beside is not True:
        completion = told.completion or 0
        if cache > prompt:
            is_beside, rule = True, f"{rule}:cache_exceeds_input"
        elif is_beside is None and told.total == prompt + completion + cache:
            is_beside, rule = True, f"{rule}:total_has_cache"
        elif is_beside is None and rule != _CONVENTIONS:
            rule = f"{rule}:taken_as_inside"
    if prompt is not None and is_beside:
        prompt += cache
    return Counts(
        prompt=prompt,
        completion=told.completion,
        cached=told.read,
        cache_write=told.written,
        reasoning=told.reasoning,
        rule=rule,
    )


def is_claude_code(attributes: Attributes, source: Exporter) -> bool:
    """Whether Claude Code itself tells of a call, by its scope or its own kind of span."""
    return source.scope.startswith("com.anthropic.claude_code") or (
        attributes.get("span.type") == "llm_request"
    )
