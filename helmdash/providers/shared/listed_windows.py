"""The windows that a listing of models tells, in whichever server's words.

Nearly every server that speaks OpenAI's API adds members of its own to `/v1/models`; the vendors
do so in their own shapes. What none of these names tells is not known: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator

from helmdash.providers.shared.bodies import read_object
from helmdash.providers.shared.reported import object_in, objects_in, text_in, tokens_of
from helmdash.providers.wire import Object

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
        tokens_of(_meta(entry).get("n_ctx")) is None
        and (entry.get("owned_by") == "llamacpp" or "n_ctx_train" in _meta(entry))
        for entry in _entries(body)
    )


def read_props(body: bytes) -> int | None:
    """The window in llama.cpp's `/props`, in tokens: that of one slot, as the server was started;
    None: not told."""
    value = read_object(body) or {}
    settings = object_in(value, "default_generation_settings") or {}
    return tokens_of(settings.get("n_ctx")) or tokens_of(value.get("n_ctx"))


def _entries(body: bytes) -> Iterator[Object]:
    value = read_object(body) or {}
    for name in _LISTS:
        yield from objects_in(value, name)


def _names(entry: Object) -> Iterator[str]:
    for name in _NAMES:
        found = text_in(entry, name)
        if found is not None:
            yield found.removeprefix(_GEMINI)


def _window(entry: Object) -> int | None:
    told = [entry.get(name) for name in _WINDOWS]
    # OpenRouter: of the provider that it routes to first.
    told.append((object_in(entry, "top_provider") or {}).get("context_length"))
    told.append(_meta(entry).get("n_ctx"))
    known = [tokens for value in told if (tokens := tokens_of(value)) is not None]
    # What llama.cpp's model was trained for: more than the server may give it.
    return min(known, default=tokens_of(_meta(entry).get("n_ctx_train")))


def _meta(entry: Object) -> Object:
    return object_in(entry, "meta") or {}
