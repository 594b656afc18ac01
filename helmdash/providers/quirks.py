"""What each OpenAI-compatible vendor does otherwise: rows of data, each with the vendor's page.

`Quirk` rows are about what we send and are chosen by the endpoint's host, else by its name. The
tables below them are about what comes back; they hold for whoever sends it, because a proxy may
stand between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from helmdash.core.upstreams.endpoints import Endpoint


class AskForUsage(StrEnum):
    """How a stream is made to report usage."""

    STREAM_OPTIONS = "stream_options"  # stream_options.include_usage
    UNASKED = "unasked"  # it always does; the option is refused or unknown


class AskForReasoning(StrEnum):
    """By which member of a request a host wants to be told how much to think."""

    EFFORT = "reasoning_effort"
    OBJECT = "reasoning"  # {"effort": …} or {"max_tokens": …}
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """One vendor. `hosts` match the end of the endpoint's host; globs are of model ids."""

    vendor: str
    page: str
    hosts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    key_header: str = "authorization"
    # Models that refuse max_tokens and want max_completion_tokens. Where the vendor is unknown
    # that is a guess: then a client's own word for the limit is left as it is.
    completion_limit_models: tuple[str, ...] = ()
    ask_for_usage: AskForUsage = AskForUsage.STREAM_OPTIONS
    ask_for_reasoning: AskForReasoning = AskForReasoning.EFFORT
    # The member in which an earlier reply's reasoning may be sent back; None: it is left out.
    reasoning_back: str | None = None
    has_json_schema: bool = True  # else json_object is asked for
    has_top_k: bool = False
    has_penalties: bool = True
    seed_member: str = "seed"
    short_call_ids: bool = False  # tool-call ids have to be nine letters and digits
    joins_text: bool = False  # content of several texts has to be one string
    # Models whose provider keeps a prefix only up to a mark, and to whom the vendor hands marks on.
    # Everybody else finds the prefixes that come again by itself.
    cache_mark_models: tuple[str, ...] = ()


_REASONING_MODELS = ("o1*", "o3*", "o4*", "gpt-5*", "codex-*")

DEFAULT = Quirk(
    vendor="openai-compatible",
    page="https://platform.openai.com/docs/api-reference/chat/create",
    completion_limit_models=_REASONING_MODELS,
)

QUIRKS: tuple[Quirk, ...] = (
    # "max_tokens is … not compatible with o-series models."
    Quirk(
        vendor="openai",
        page="https://platform.openai.com/docs/api-reference/chat/create",
        hosts=("api.openai.com",),
        completion_limit_models=_REASONING_MODELS,
    ),
    # The key goes into its own header; the first chunk has no choices but prompt_filter_results.
    Quirk(
        vendor="azure",
        page="https://learn.microsoft.com/azure/ai-services/openai/reference",
        hosts=("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"),
        key_header="api-key",
        completion_limit_models=_REASONING_MODELS,
    ),
    # Usage comes with every stream; stream_options is accepted. Effort is an object.
    Quirk(
        vendor="openrouter",
        page="https://openrouter.ai/docs/use-cases/reasoning-tokens",
        hosts=("openrouter.ai",),
        names=("openrouter",),
        ask_for_reasoning=AskForReasoning.OBJECT,
        reasoning_back="reasoning",
        has_top_k=True,
        # https://openrouter.ai/docs/features/prompt-caching: cache_control on a text part
        cache_mark_models=("anthropic/*", "google/gemini*"),
    ),
    # Only json_object; with tools the reasoning of the same turn has to be sent back.
    Quirk(
        vendor="deepseek",
        page="https://api-docs.deepseek.com/guides/thinking_mode",
        hosts=("api.deepseek.com",),
        names=("deepseek",),
        ask_for_reasoning=AskForReasoning.NONE,
        reasoning_back="reasoning_content",
        has_json_schema=False,
        joins_text=True,
    ),
    # Usage is in the last chunk unasked, stream_options is refused (422, extra_forbidden).
    Quirk(
        vendor="mistral",
        page="https://docs.mistral.ai/api/endpoint/chat",
        hosts=("api.mistral.ai", "codestral.mistral.ai"),
        names=("mistral",),
        ask_for_usage=AskForUsage.UNASKED,
        ask_for_reasoning=AskForReasoning.NONE,
        seed_member="random_seed",
        short_call_ids=True,
    ),
    # Streams report usage under x_groq, asked or not (USAGE_PLACES).
    Quirk(
        vendor="groq",
        page="https://console.groq.com/docs/openai",
        hosts=("api.groq.com",),
        names=("groq",),
    ),
    # Reasoning models refuse penalties; completion_tokens leave the reasoning out (core/usage.py).
    Quirk(
        vendor="xai",
        page="https://docs.x.ai/docs/guides/reasoning",
        hosts=("api.x.ai",),
        names=("xai",),
        has_penalties=False,
    ),
    Quirk(
        vendor="together",
        page="https://docs.together.ai/reference/chat-completions-1",
        hosts=("api.together.xyz", "api.together.ai"),
        names=("together",),
        has_top_k=True,
    ),
    # Usage is in the finish chunk of a stream.
    Quirk(
        vendor="fireworks",
        page="https://docs.fireworks.ai/api-reference/post-chatcompletions",
        hosts=("api.fireworks.ai",),
        names=("fireworks",),
        has_top_k=True,
    ),
    # Google's OpenAI layer: some models refuse penalties; calls of a turn may share the index 0.
    Quirk(
        vendor="gemini-openai",
        page="https://ai.google.dev/gemini-api/docs/openai",
        hosts=("generativelanguage.googleapis.com",),
        has_penalties=False,
    ),
    Quirk(
        vendor="vllm",
        page="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        names=("vllm",),
        has_top_k=True,
    ),
    Quirk(
        vendor="llama.cpp",
        page="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        names=("llamacpp", "llama.cpp", "llama-cpp"),
        has_top_k=True,
    ),
    Quirk(
        vendor="lmstudio",
        page="https://lmstudio.ai/docs/developer/openai-compat/chat-completions",
        names=("lmstudio", "lm-studio"),
        has_top_k=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place where vendors say something in what they send: a path of members, and who."""

    path: tuple[str, ...]
    who: str
    page: str


# Where usage stands, best first.
USAGE_PLACES: tuple[Place, ...] = (
    Place(
        path=("usage",),
        who="everybody; streams of Mistral, Fireworks and DeepSeek in the finish chunk",
        page="https://platform.openai.com/docs/api-reference/chat-streaming",
    ),
    Place(
        path=("x_groq", "usage"),
        who="Groq, in the last chunk of a stream, whether asked or not",
        page="https://console.groq.com/docs/api-reference",
    ),
)

# Where a delta or a message carries what the model thought; the first that has text counts, since
# vLLM and OpenRouter say the same thing under two names.
REASONING_PLACES: tuple[Place, ...] = (
    Place(
        path=("reasoning_content",),
        who="DeepSeek, xAI, Qwen, Moonshot, llama.cpp, older vLLM, Fireworks",
        page="https://api-docs.deepseek.com/guides/thinking_mode",
    ),
    Place(
        path=("reasoning",),
        who="OpenRouter, Groq, Together, LM Studio, newer vLLM",
        page="https://openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
)


def quirk_of(endpoint: Endpoint) -> Quirk:
    """The row of an endpoint: by its host, else by its name, else the plain OpenAI way."""
    return _quirk(endpoint.base_url, endpoint.name)


@lru_cache(maxsize=256)
def _quirk(base_url: str, name: str) -> Quirk:
    host, name = (urlsplit(base_url).hostname or "").lower(), name.lower()
    for row in QUIRKS:
        if any(host == known or host.endswith("." + known) for known in row.hosts):
            return row
    return next((row for row in QUIRKS if name in row.names), DEFAULT)


def marks_cache(quirk: Quirk, model: str) -> bool:
    """Whether this model has to be told where a cacheable prefix ends."""
    name = model.lower()
    return any(fnmatchcase(name, glob) for glob in quirk.cache_mark_models)


def wants_completion_limit(quirk: Quirk, model: str) -> bool:
    """Whether this model's limit is called max_completion_tokens.

    A proxy may write the vendor before the name: openai/o4-mini.
    """
    name = model.lower().rpartition("/")[2]
    return any(fnmatchcase(name, glob) for glob in quirk.completion_limit_models)
