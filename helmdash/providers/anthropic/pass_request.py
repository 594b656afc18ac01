"""A client's own bytes for an Anthropic upstream: only the model's id may have to change."""

from __future__ import annotations

from helmdash.core.text.jsontext import TooDeep
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.anthropic.http import post
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import with_members
from helmdash.providers.wire import Object


def pass_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """The bytes as they came, with the model's id in place; the same object if it was there.

    Streams report usage whether they are asked to or not.

    Raises CannotTranslate for a body nested a thousand deep that has to be written anew.
    """
    return post(endpoint, "/messages", with_model(body, parsed, model))


def with_model(body: bytes, parsed: Object, model: str) -> bytes:
    """The client's bytes with another model, all else to the byte as it was."""
    changes = {"model": model}
    try:
        return with_members(body, parsed, changes)
    except TypeError:  # orjson cannot write it
        return _written_anew({**parsed, **changes})


def _written_anew(parsed: Object) -> bytes:
    try:
        return to_json(parsed)
    except TooDeep as error:
        raise CannotTranslate("The request is nested too deeply.") from error
