"""Lists of models in the OpenAI format, both ways: https://platform.openai.com/docs/api-reference/models."""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import MODELS_PATH, get
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json, to_json
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import Json


def write_models(models: Iterable[tuple[str, str]], *, created: int) -> bytes:
    """A list of models: pairs of an id and who serves it; `created` in seconds."""
    data = [_model(model, owner, created) for model, owner in models]
    return to_json({"object": "list", "data": data})


def write_model(model: str, *, owner: str, created: int) -> bytes:
    """One model, as `GET /v1/models/{id}` answers."""
    return to_json(_model(model, owner, created))


def _model(model: str, owner: str, created: int) -> dict[str, Json]:
    return {"id": model, "object": "model", "created": created, "owned_by": owner}


def models_request(*, endpoint: Endpoint) -> HttpRequest:
    """Ask for the list of models."""
    return get(endpoint, MODELS_PATH)


def read_models(body: bytes) -> tuple[str, ...]:
    """The ids of a list of models; Together sends the list without an object around it.

    Raises ValueError when it is none.
    """
    value = read_json(body)
    items = value.get("data") if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise ValueError("The reply is not a list of models.")
    ids = (text_in(item, "id") for item in items if isinstance(item, dict))
    return tuple(name for name in ids if name)
