"""Lists of models in Anthropic's shape, both ways."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.http import get
from helmdash.providers.protocols import HttpRequest, ListedModel
from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import Json

_LARGEST_PAGE = 1000  # the vendor's own limit, and far more models than it has


def models_request(*, endpoint: Endpoint) -> HttpRequest:
    """Ask for the list of models, all on one page."""
    return get(endpoint, f"/models?limit={_LARGEST_PAGE}")


def read_models(body: bytes) -> tuple[str, ...]:
    """The ids in the list. Raises ValueError where it is no such list."""
    parsed = orjson.loads(body)
    models = parsed.get("data") if isinstance(parsed, dict) else None
    if not isinstance(models, list):
        raise ValueError("The list of models has no member `data` with a list.")
    ids = (text_in(model, "id") for model in models if isinstance(model, dict))
    return tuple(name for name in ids if name)


def write_models(models: Iterable[ListedModel], *, created: int) -> bytes:
    """A list of models, on one page; Anthropic names no owners."""
    data = [_model(model, created) for model in models]
    return orjson.dumps(
        {
            "data": data,
            "has_more": False,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
        }
    )


def write_model(model: ListedModel, *, created: int) -> bytes:
    """One model, as `GET /v1/models/{id}` answers."""
    return orjson.dumps(_model(model, created))


def _model(model: ListedModel, created: int) -> dict[str, Json]:
    at = datetime.fromtimestamp(created, UTC)
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        # Tokens; the vendor writes null for what it does not say.
        "max_input_tokens": model.window,
        "max_tokens": model.output_tokens,
    }
