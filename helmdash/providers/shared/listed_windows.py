"""The windows that a listing of models tells, in whichever server's words.

Nearly every server that speaks OpenAI's API adds members of its own to `/v1/models`; the vendors
do so in their own shapes. What none of these names tells is not known: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from helmdash.providers.shared.bodies import read_object
from helmdash.providers.wire import Json, Object

# Where the entries are: OpenAI, Anthropic and all that follow them; Gemini.
_LISTS = ("data", "models")
_NAMES = ("id", "name", "model")
_GEMINI = "models/"
# What a model takes in all or as a prompt; of several, the smallest holds.
_WINDOWS = (
    "max_model_len",  # vLLM, SGLang
    "loaded_context_length",  # LM Studio: as it is loaded
    "context_length",  # OpenRouter, Together, Fireworks
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "max_input_tokens",  # Anthropic
    "inputTokenLimit",  # Gemini
)
_MOST_TOKENS = 2**31 - 1


def read_windows(body: bytes) -> dict[str, int]:
    """Tokens by model id, of the models that tell any. Never raises."""
    return {
        name: tokens
        for entry in _entries(body)
        if (tokens := _window(entry))
        for name in _names(entry)
    }


def is_llama_cpp(body: bytes) -> bool:
    """Whether llama.cpp's server answered and told no window of its own: `/props` has it."""
    return any(
        _count(_meta(entry).get("n_ctx")) is None
        and (entry.get("owned_by") == "llamacpp" or "n_ctx_train" in _meta(entry))
        for entry in _entries(body)
    )


def read_props(body: bytes) -> int | None:
    """The window in llama.cpp's `/props`: that of one slot, as the server was started."""
    value = read_object(body) or {}
    settings = value.get("default_generation_settings")
    told = settings.get("n_ctx") if isinstance(settings, Mapping) else None
    return _count(told) or _count(value.get("n_ctx"))


def _entries(body: bytes) -> Iterator[Object]:
    value = read_object(body) or {}
    for name in _LISTS:
        found = value.get(name)
        for entry in found if isinstance(found, list) else ():
            if isinstance(entry, Mapping):
                yield entry


def _names(entry: Object) -> Iterator[str]:
    for name in _NAMES:
        found = entry.get(name)
        if isinstance(found, str) and found:
            yield found.removeprefix(_GEMINI)


def _window(entry: Object) -> int | None:
    provider = entry.get("top_provider")  # OpenRouter: of the one that it routes to first
    told = [entry.get(name) for name in _WINDOWS]
    if isinstance(provider, Mapping):
        told.append(provider.get("context_length"))
    told.append(_meta(entry).get("n_ctx"))
    known = [tokens for value in told if (tokens := _count(value)) is not None]
    # What llama.cpp's model was trained for: more than the server may give it.
    return min(known, default=_count(_meta(entry).get("n_ctx_train")))


def _meta(entry: Object) -> Mapping[str, Json]:
    meta = entry.get("meta")
    return meta if isinstance(meta, Mapping) else {}


def _count(value: Json) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS
    return value if is_count and isinstance(value, int) else None
