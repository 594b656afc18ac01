"""A client's own Responses request, passed on as it is but for the model's id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import post
from helmdash.providers.openai_responses.items.compactions import summary_in
from helmdash.providers.openai_responses.items.reasoning import is_ours
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import with_items, with_members
from helmdash.providers.wire import Json, Object

RESPONSES_PATH = "/responses"


# In what is sealed of ours: an input without it holds no item that we have made.
_OURS = b'"helmdash-'


def pass_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """The bytes that `passed_body` gives: a stream of this API reports usage unasked."""
    return post(endpoint, RESPONSES_PATH, passed_body(body, parsed, model=model))


def passed_body(body: bytes, parsed: Object, *, model: str) -> bytes:
    """A client's own bytes, but for the model's id, and for items that we have made for a client of
    another model, which OpenAI refuses: a summary of ours goes on in words, another vendor's
    thoughts stay here.
    """
    if _OURS in body and isinstance(parsed.get("input"), list):
        body, parsed = with_items(body, parsed, "input", list(_readable(parsed["input"])))
    return with_members(body, parsed, {"model": model})


def _readable(items: Sequence[Json]) -> Iterator[int | Object]:
    """The items by their places, without ours."""
    for at, item in enumerate(items):
        summary = summary_in(item) if isinstance(item, dict) else None
        if summary is not None:
            content = [{"type": "input_text", "text": summary}]
            yield {"type": "message", "role": "user", "content": content}
        elif not isinstance(item, dict) or not is_ours(item):
            yield at
