"""A client's own request in the OpenAI format, passed on with as little changed as can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import CHAT_PATH, post
from helmdash.providers.openai.read_request import wants_usage
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.quirks import (
    DEFAULT,
    AskForUsage,
    Quirk,
    quirk_of,
    wants_completion_limit,
)
from helmdash.providers.shared.bodies import to_json, with_members, without_members
from helmdash.providers.wire import Json, Object


def pass_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """A client's own bytes, but for the model's id, the usage of streams and a limit's name."""
    quirk = quirk_of(endpoint)
    usage = _usage_change(parsed, quirk) if stream else _Usage()
    changed = with_members(
        body,
        parsed,
        {"model": model, **usage.members},
        renamed=_renamed_limit(parsed, quirk, model),
    )
    if usage.is_refused:
        changed = _without_stream_options(changed, parsed)
    return post(endpoint, CHAT_PATH, changed)


class _Usage(NamedTuple):
    """What has to change so that a stream reports usage."""

    members: Mapping[str, Json] = {}
    is_refused: bool = False  # stream_options has to go


def _usage_change(parsed: Object, quirk: Quirk) -> _Usage:
    options = parsed.get("stream_options")
    if quirk.ask_for_usage is AskForUsage.UNASKED:
        return _Usage(is_refused="stream_options" in parsed)
    if wants_usage(parsed):
        return _Usage()
    others = options if isinstance(options, dict) else {}
    return _Usage({"stream_options": {**others, "include_usage": True}})


def _renamed_limit(parsed: Object, quirk: Quirk, model: str) -> Mapping[str, str]:
    due = (
        quirk is not DEFAULT
        and "max_tokens" in parsed
        and "max_completion_tokens" not in parsed
        and wants_completion_limit(quirk, model)
    )
    return {"max_tokens": "max_completion_tokens"} if due else {}


def _without_stream_options(body: bytes, parsed: Object) -> bytes:
    taken_out = without_members(body, ("stream_options",))
    if taken_out is not None:
        return taken_out
    return to_json({name: value for name, value in parsed.items() if name != "stream_options"})
