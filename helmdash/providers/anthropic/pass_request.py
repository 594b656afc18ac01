"""A client's own bytes for an Anthropic upstream: only the model's id may have to change."""

from __future__ import annotations

from helmdash.core.text.jsontext import TooDeep
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.anthropic.http import post
from helmdash.providers.anthropic.seals import with_own_thoughts
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import with_members
from helmdash.providers.wire import Object


def pass_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """The bytes as they came, with the model's id in place; the same object if it was there.

    Without thoughts that another vendor's model had, where Anthropic itself would refuse them.

    Streams report usage whether they are asked to or not.

    Raises CannotTranslate for a body nested a thousand deep that has to be written anew.
    """
    return post(endpoint, "/messages", passed_body(body, parsed, endpoint, model))


def passed_body(body: bytes, parsed: Object, endpoint: Endpoint, model: str) -> bytes:
    """The client's bytes with another model and without thoughts that Anthropic would refuse, all
    else to the byte as it was."""
    own, told = with_own_thoughts(body, parsed, endpoint)
    changes = {"model": model}
    try:
        return with_members(own, told, changes)
    except TypeError:  # orjson cannot write it
        return _written_anew({**told, **changes})


def _written_anew(parsed: Object) -> bytes:
    try:
        return to_json(parsed)
    except TooDeep as error:
        raise CannotTranslate("The request is nested too deeply.") from error
