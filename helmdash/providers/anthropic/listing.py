"""The Messages API's lists of models and its token counts, both ways."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.http import credentials, path_for, post
from helmdash.providers.anthropic.pass_request import with_model
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Json, Object

_LARGEST_PAGE = 1000  # the vendor's own limit, and far more models than it has


def models_request(*, endpoint: Endpoint) -> HttpRequest:
    """Ask for the list of models, all on one page."""
    path = path_for(endpoint, f"/models?limit={_LARGEST_PAGE}")
    return HttpRequest(path=path, headers=credentials(endpoint))


def read_models(body: bytes) -> tuple[str, ...]:
    """The ids in the list. Raises ValueError where it is no such list."""
    parsed = orjson.loads(body)
    models = parsed.get("data") if isinstance(parsed, dict) else None
    if not isinstance(models, list):
        raise ValueError("The list of models has no member `data` with a list.")
    ids = (model.get("id") for model in models if isinstance(model, dict))
    return tuple(found for found in ids if isinstance(found, str) and found)


def write_models(ids: Iterable[str], created: int | None = None) -> bytes:
    """The list as Anthropic sends it; `created` in seconds since the epoch, None unknown."""
    models = [_model(one, created) for one in ids]
    return orjson.dumps(
        {
            "data": models,
            "has_more": False,
            "first_id": models[0]["id"] if models else None,
            "last_id": models[-1]["id"] if models else None,
        }
    )


def write_model(identifier: str, created: int | None = None) -> bytes:
    """One model, as `GET /v1/models/{id}` answers."""
    return orjson.dumps(_model(identifier, created))


def _model(identifier: str, created: int | None) -> dict[str, Json]:
    # The vendor says an epoch date where a release date is unknown.
    at = datetime.fromtimestamp(created or 0, UTC)
    return {
        "type": "model",
        "id": identifier,
        "display_name": identifier,
        "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
    }


def count_request(body: bytes, parsed: Object, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Ask for a count with the client's own bytes; only the model's id may change."""
    return post(endpoint, "/messages/count_tokens", with_model(body, parsed, model))


def read_count(body: bytes) -> int | None:
    """The count of input tokens; None where the answer has none. Never raises."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    count = parsed.get("input_tokens") if isinstance(parsed, dict) else None
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        return None
    return count


def write_count(tokens: int) -> bytes:
    """A count as Anthropic sends it."""
    return orjson.dumps({"input_tokens": tokens})
