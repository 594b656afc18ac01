"""One name for one model: what figures, filters and learned windows go by.

Clients write a model as they like: `gpt-4o`, `OpenAI/gpt-4o`, `azure/gpt-4o`, `llama3:latest`. The
spelling is kept with the call; its key is the same for all of them. A key is `provider/model` in
small letters where the provider is known, by the upstream that answered or by an alias.

A suffix such as `[1m]` names no other model: it says which window the client counts on (Claude
Code writes it so). Anthropic's beta header `context-1m-…` says the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# As long as a column; providers and models are each checked at the door.
KEY_CHARS = 255

_SUFFIX = re.compile(r"\s*\[(\d{1,4})(k|m)\]$", re.I)
_BETA = re.compile(rb"(?<![\w-])context-(\d{1,4})(k|m)(?=-|,|\s|$)")
_UNITS = {"k": 1_000, "m": 1_000_000}
# Ollama's tag of a name that has none; the prefix of Gemini's API.
LATEST_TAG = ":latest"
_GEMINI = "models/"
# Of a router's route that costs nothing.
FREE_SUFFIX = ":free"
# An alias may lead to another one; none leads further in practice.
_MOST_HOPS = 3


class Spelling(NamedTuple):
    """Another beginning of the same models' ids, both in small letters."""

    prefix: str
    target: str


class AskedModel(NamedTuple):
    """A model id without its suffix, and the window (tokens) that this named; None: it had none."""

    model: str
    window: int | None


def split_window(model: str) -> AskedModel:
    """Take a suffix that names a window off a model id.

    >>> split_window("claude-sonnet-4-5[1m]")
    AskedModel(model='claude-sonnet-4-5', window=1000000)
    """
    found = _SUFFIX.search(model) if model.endswith("]") else None
    if found is None or found.start() == 0:
        return AskedModel(model, None)
    tokens = int(found[1]) * _UNITS[found[2].lower()]
    return AskedModel(model[: found.start()], tokens or None)


def beta_window(betas: bytes) -> int | None:
    """The window (tokens) that an `anthropic-beta` header asks for; None: none.

    >>> beta_window(b"claude-code-20250219,context-1m-2025-08-07")
    1000000
    """
    found = _BETA.search(betas) if b"context-" in betas else None
    return None if found is None else int(found[1]) * _UNITS[found[2].decode().lower()] or None


def spellings_of(aliases: Sequence[tuple[str, str]]) -> tuple[Spelling, ...]:
    """The aliases (prefix, target) as other spellings of the same model, the longest first.

    Budgets also borrow: an id of a vendor takes the row of a router's, and the other way round.
    There the model comes from somebody else, so its figures are its own.
    """
    named = (Spelling(prefix.strip().lower(), target.strip().lower()) for prefix, target in aliases)
    found = {each for pair in named if (each := _spelling(pair)) is not None}
    return tuple(sorted(found, key=lambda each: (-len(each.prefix), each)))


def model_key(model: str, *, provider: str | None, spellings: Sequence[Spelling]) -> str:
    """The key of a model that was asked for as `model`.

    `provider`: who answered; None: not told, so the id itself has to say it.
    """
    key = split_window(model.strip()).model.lower().removesuffix(LATEST_TAG)
    named = (provider or "").strip().lower()
    if named and not key.startswith(f"{named}/"):
        respelled = _respelled(key, spellings)
        home = _respelled(f"{named}/", spellings)
        # `claude-x` of `anthropic`, and `google/gemini-x` of `gemini`, say their provider already.
        key = respelled if respelled.startswith(home) else f"{named}/{key.removeprefix(_GEMINI)}"
    return _respelled(key, spellings)[:KEY_CHARS]


def bare_name(key: str) -> str:
    """What stands behind the first slash of a key; without one, all of it."""
    return key.partition("/")[2] or key


def _respelled(key: str, spellings: Sequence[Spelling]) -> str:
    for _ in range(_MOST_HOPS):
        found = next((each for each in spellings if _begins(key, each.prefix)), None)
        if found is None or key.startswith(found.target):
            return key
        key = found.target + key[len(found.prefix) :]
    return key


def _begins(key: str, prefix: str) -> bool:
    """A prefix without a provider is one of bare names: `gpt-` does not begin `gpt-proxy/llama`."""
    return key.startswith(prefix) and ("/" in prefix or "/" not in key)


def _spelling(alias: Spelling) -> Spelling | None:
    prefix, target = alias
    router, _, direct = target.partition("/")
    if prefix.partition("/")[0] != router:
        if prefix.endswith(target):
            return None  # the same words, by way of a router
        if "/" in direct:
            target = direct  # the vendor's own name for what is borrowed from a router
    return Spelling(prefix, target) if prefix and prefix != target else None
