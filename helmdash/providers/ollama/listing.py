"""What an Ollama server says about itself and its models, for clients that ask first.

Source: https://docs.ollama.com/api/tags, /api/show, /api/ps and /api/version. What we do not know
about a model (size, family, quantisation) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.ollama.http import get
from helmdash.providers.ollama.reply import timestamp
from helmdash.providers.protocols import HttpRequest, ListedModel
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import objects_in, text_in
from helmdash.providers.wire import (
    Json,
)

# Clients look for `<architecture>.context_length`, whatever the architecture is called.
_ARCHITECTURE = "helmdash"


def write_models(models: Iterable[ListedModel], *, created: int) -> bytes:
    """The list of models (`/api/tags`); Ollama names no owners."""
    return orjson.dumps({"models": [_model(model, created) for model in models]})


def write_model(model: ListedModel, *, created: int) -> bytes:
    """One entry of the list; Ollama's own clients ask `/api/show` instead (write_show)."""
    return orjson.dumps(_model(model, created))


def _model(model: ListedModel, created: int) -> dict[str, Json]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": timestamp(created),
        # The command line client cuts twelve letters off without looking for them.
        "digest": sha256(model.name.encode()).hexdigest(),
        "details": {},
    }


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
    """What `/api/version` answers: clients look whether a server is new enough."""
    return orjson.dumps({"version": version})


def read_models(body: bytes) -> tuple[str, ...]:
    """The ids in a list of models, tags included. Raises ValueError for no such list."""
    return models_in(read_json(body))


def models_in(value: Json) -> tuple[str, ...]:
    """The same of an answer that has been parsed. Raises ValueError."""
    if not isinstance(value, dict) or not isinstance(value.get("models"), list):
        raise ValueError("This is no list of Ollama models: `models` is missing.")
    models = objects_in(value, "models")
    names = (text_in(model, "model") or text_in(model, "name") for model in models)
    return tuple(name for name in names if name)


def models_request(*, endpoint: Endpoint) -> HttpRequest:
    """Ask for the list of models."""
    return get(endpoint, "tags")
