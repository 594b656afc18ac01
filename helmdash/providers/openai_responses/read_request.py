"""Requests of the Responses API, read from a client.

https://platform.openai.com/docs/api-reference/responses/create. A request may be a fragment: it
goes on from a response or conversation that the server keeps, and holds only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.read_request import model_of
from helmdash.providers.openai_responses.read_input import Input, read_input
from helmdash.providers.openai_responses.tools import read_choice, read_tools
from helmdash.providers.shared.members import count_at, flag_at, number_at, object_at, text_at
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.wire import ChatRequest, Json, JsonMode, Object, Role, Text

# The members that fields of ChatRequest cover; every other one is `extra`.
_COVERED = frozenset(
    """model input instructions stream tools tool_choice parallel_tool_calls text
    max_output_tokens temperature top_p reasoning metadata previous_response_id conversation
    truncation""".split()
)
# What a response repeats of its request, and what it says where the request is silent.
_REPEATED: Mapping[str, Json] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
# What only a server can do that keeps what was said: members, and why each is refused elsewhere.
_KEPT_ELSEWHERE: Mapping[str, str] = {
    "previous_response_id": "no response is kept for this model. Send the whole input instead.",
    "conversation": "no conversation is kept for this model. Send the whole input instead.",
    "background": "this model answers while the client waits. Leave it out.",
    "prompt": "stored prompts are OpenAI's own. Send its text as instructions and input.",
}
_MOST_SENTENCES = 8
_FORMATS = ("text", "json_schema", "json_object")
# What a request that names no tier gets.
_PLAIN_TIERS = (None, "auto", "default")


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a client's request; `model` and `stream` None: as the body says. Raises BadRequest
    naming the member."""
    found = _read_input(body)
    offer = read_tools(body)
    choice, tools, unsaid = read_choice(body, offer.tools)
    streams = flag_at(body, "stream") or False if stream is None else stream
    return ChatRequest(
        model=model if model is not None else model_of(body),
        messages=tuple(found.messages),
        stream=streams,
        tools=tuple(tools),
        tool_choice=choice,
        parallel_tool_calls=flag_at(body, "parallel_tool_calls"),
        json_mode=_json_mode(body),
        max_tokens=count_at(body, "max_output_tokens"),
        temperature=number_at(body, "temperature"),
        top_p=number_at(body, "top_p"),
        reasoning_effort=text_in(object_at(body, "reasoning") or {}, "effort"),
        metadata=object_in(body, "metadata"),
        extra={name: value for name, value in body.items() if name not in _COVERED},
        is_fragment=not found.is_whole or any(map(body.get, ("prompt", *_NAMES))),
        conversation=_conversation(body),
        continues=text_at(body, "previous_response_id"),
        keeps_reply=body.get("store") is not False,
        may_truncate=body.get("truncation") == "auto",
        left_out=_sentences((*offer.left_out, *found.left_out, *_without_words(body))),
        untranslatable=(
            _kept_elsewhere(body) or found.untranslatable or unsaid or _other_format(body)
        ),
        repeated={
            name: default if body.get(name) is None else body[name]
            for name, default in _REPEATED.items()
        },
    )


_NAMES = ("previous_response_id", "conversation")


def _read_input(body: Object) -> Input:
    found = Input()
    instructions = body.get("instructions")
    if isinstance(instructions, str):
        found.add(Role.SYSTEM, Text(text=instructions))
    else:
        read_input(instructions, found)
    said = body.get("input")
    if said is None and not any(map(body.get, ("prompt", *_NAMES))):
        raise BadRequest("input", "This has to be a string or an array of items.")
    read_input(said, found)
    return found


def _conversation(body: Object) -> str | None:
    """A conversation is named by its id, or by an object that holds it."""
    named = body.get("conversation")
    if isinstance(named, dict):
        return text_at(named, "id", path="conversation")
    return text_at(body, "conversation")


def _json_mode(body: Object) -> JsonMode | None:
    wanted = object_at(object_at(body, "text") or {}, "format", path="text") or {}
    if wanted.get("type") == "json_object":
        return JsonMode()
    if wanted.get("type") != "json_schema":
        return None
    strict = wanted.get("strict")
    return JsonMode(
        schema=object_at(wanted, "schema", path="text.format"),
        name=text_in(wanted, "name"),
        strict=strict if isinstance(strict, bool) else None,
    )


def _other_format(body: Object) -> str | None:
    """Why the reply's format can be asked of OpenAI alone: a program that asked for one cannot read
    another."""
    kind = (object_in(object_in(body, "text") or {}, "format") or {}).get("type", "text")
    if kind in _FORMATS:
        return None
    return f"text.format.type: this has to be one of {', '.join(_FORMATS)} for this model."


def _kept_elsewhere(body: Object) -> str | None:
    return next((f"{name}: {why}" for name, why in _KEPT_ELSEWHERE.items() if body.get(name)), None)


def _without_words(body: Object) -> Iterable[str]:
    """Wishes that another API has no words for, and that do not change what is asked."""
    if body.get("truncation") == "auto":
        yield "truncation: this model's server does not shorten prompts by itself: left out."
    if body.get("store") is True:
        yield "store: the response is not kept, so it cannot be gone on from by its id."
    if body.get("context_management"):
        yield "context_management: this model's server does not compact by itself: left out."
    if text_in(object_in(body, "text") or {}, "verbosity"):
        yield "text.verbosity: left out."
    if body.get("service_tier") not in _PLAIN_TIERS:
        yield "service_tier: left out."
    if body.get("top_logprobs"):
        yield "top_logprobs: this model's API does not give them here: left out."


def _sentences(found: Iterable[str]) -> tuple[str, ...]:
    """Each once; of very many the first ones."""
    return tuple(dict.fromkeys(found))[:_MOST_SENTENCES]
