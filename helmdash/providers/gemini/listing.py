"""Lists of models in Gemini's shape, both ways: https://ai.google.dev/api/models."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.gemini.http import get
from helmdash.providers.protocols import HttpRequest, ListedModel
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import (
    Json,
)

# The most models a page may have; no key of ours sees as many.
_LARGEST_PAGE = 1000


def read_models(body: bytes) -> tuple[str, ...]:
    """The ids in a list of models, without `models/`. Raises ValueError for no such list."""
    value = orjson.loads(body)
    models = value.get("models") if isinstance(value, dict) else None
    if not isinstance(models, list):
        raise ValueError("This is no list of Gemini models: `models` is missing.")
    names = [text_in(model, "name") for model in models if isinstance(model, dict)]
    return tuple(name.removeprefix("models/") for name in names if name)


def write_models(models: Iterable[ListedModel], *, created: int) -> bytes:
    """A list of models, on one page; Gemini names neither owners nor times."""
    return orjson.dumps({"models": [_model(model) for model in models]})


def write_model(model: ListedModel, *, created: int) -> bytes:
    """One model, as `GET /v1beta/models/{id}` answers."""
    return orjson.dumps(_model(model))


def _model(model: ListedModel) -> dict[str, Json]:
    return without_nones(
        name=f"models/{model.name}",
        displayName=model.name,
        inputTokenLimit=model.window,
        outputTokenLimit=model.output_tokens,
        supportedGenerationMethods=["generateContent", "countTokens"],
    )


def models_request(*, endpoint: Endpoint) -> HttpRequest:
    """Ask for the list of models."""
    return get(endpoint, f"/models?pageSize={_LARGEST_PAGE}")
