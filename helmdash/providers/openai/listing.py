"""Lists of models in the OpenAI format, both ways: https://platform.openai.com/docs/api-reference/models."""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import MODELS_PATH, get
from helmdash.providers.protocols import HttpRequest, ListedModel
from helmdash.providers.shared.bodies import read_json, to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import Json


def write_models(models: Iterable[ListedModel], *, created: int) -> bytes:
    """A list of models; `created` in seconds."""
    data = [_model(model, created) for model in models]
    return to_json({"object": "list", "data": data})


def write_model(model: ListedModel, *, created: int) -> bytes:
    """One model, as `GET /v1/models/{id}` answers."""
    return to_json(_model(model, created))


def _model(model: ListedModel, created: int) -> dict[str, Json]:
    """The vendor's four members, and the sizes in the members that clients look for.

    OpenAI itself tells none, so each server (OpenRouter, Groq, vLLM) has a name of its own for the
    same number.
    """
    return without_nones(
        id=model.name,
        object="model",
        created=created,
        owned_by=model.owner,
        context_length=model.window,
        context_window=model.window,
        max_model_len=model.window,
        max_output_tokens=model.output_tokens,
    )


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
