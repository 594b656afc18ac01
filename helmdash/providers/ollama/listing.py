"""What an Ollama server says about itself and its models, for clients that ask first.

Source: https://docs.ollama.com/api/tags, /api/show, /api/ps and /api/version. What we do not know
about a model (size, family, quantisation) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import orjson

from helmdash.providers.ollama.reply import timestamp
from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import Json

# Clients look for `<architecture>.context_length`, whatever the architecture is called.
_ARCHITECTURE = "helmdash"


def write_tags(ids: Iterable[str], *, at: int) -> bytes:
    """The list of models; `at` is in seconds since the epoch."""
    modified_at = timestamp(at)
    models = [
        {
            "name": model_id,
            "model": model_id,
            "modified_at": modified_at,
            # The command line client cuts twelve letters off without looking for them.
            "digest": sha256(model_id.encode()).hexdigest(),
            "details": {},
        }
        for model_id in ids
    ]
    return orjson.dumps({"models": models})


def write_show(
    *,
    context_length: int | None = None,
    capabilities: Iterable[str] = (),
    at: int | None = None,
) -> bytes:
    """One model. `context_length` in tokens, None where it is not known; `capabilities` in
    Ollama's words (completion, tools, vision, thinking, embedding)."""
    info: dict[str, Json] = {"general.architecture": _ARCHITECTURE}
    if context_length is not None:
        info[f"{_ARCHITECTURE}.context_length"] = context_length
    body = without_nones(
        details={},
        model_info=info,
        capabilities=list(capabilities),
        modified_at=timestamp(at) if at is not None else None,
    )
    return orjson.dumps(body)


def write_ps() -> bytes:
    """The models in memory: none of ours."""
    return orjson.dumps({"models": []})


def write_version(version: str) -> bytes:
    """The server's version."""
    return orjson.dumps({"version": version})
