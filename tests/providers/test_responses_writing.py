"""Requests of other formats, as an upstream that speaks the Responses API alone is sent them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind, WireFormat
from helmdash.providers import openai
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.openai_responses import SPOKEN

ENDPOINT = Endpoint(
    name="answers",
    kind=ProviderKind.OPENAI,
    base_url="https://llm.example/v1",
    formats=(WireFormat.RESPONSES,),
)
# Chat's messages and wishes, and what an upstream that speaks this API alone is sent for them.
_SAID: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"role": "developer", "content": "Answer in JSON."},
     [{"role": "system", "content": "Answer in JSON."}]),
    ({"role": "user", "content": [
        {"type": "text", "text": "See?"},
        {"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,x"}}]},
     [{"role": "user", "content": [
         {"type": "input_text", "text": "See?"},
         {"type": "input_image", "image_url": "https://e.org/a.png", "detail": "low"},
         {"type": "input_file", "filename": "a.pdf", "file_data": "data:,x"}]}]),
    ({"role": "assistant", "content": "Look.", "reasoning_content": "hm", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}]},
     [{"role": "assistant", "content": "Look."},
      {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}]),
    ({"role": "tool", "tool_call_id": "c", "content": "ü"},
     [{"type": "function_call_output", "call_id": "c", "output": "ü"}]),
    ({"role": "assistant", "content": ""}, [{"role": "assistant", "content": ""}]),
]  # fmt: skip
_FUNCTION: dict[str, Any] = {"type": "function", "name": "look"}
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_WISHES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}, []),
    ({"max_tokens": 5, "temperature": 0, "top_p": 1, "stop": "END", "seed": 1},
     {"max_output_tokens": 16, "temperature": 0, "top_p": 1}, ["stop", "The reply"]),
    ({"tools": [{"type": "function", "function": {"name": "look"}}], "tool_choice": "required",
      "parallel_tool_calls": False},
     {"tools": [_FUNCTION | {"parameters": _NOTHING, "strict": False}],
      "tool_choice": "required", "parallel_tool_calls": False}, []),
    ({"tools": [{"type": "function", "function": {
        "name": "look", "description": "d", "parameters": {"a": 1}, "strict": True}}],
      "tool_choice": {"type": "function", "function": {"name": "look"}}},
     {"tools": [_FUNCTION | {"description": "d", "parameters": {"a": 1}, "strict": True}],
      "tool_choice": _FUNCTION}, []),
    ({"response_format": {"type": "json_object"}, "reasoning_effort": "low"},
     {"text": {"format": {"type": "json_object"}}, "reasoning": {"effort": "low"}}, []),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": True}}},
     {"text": {"format": {
         "type": "json_schema", "name": "reply", "schema": {}, "strict": True}}}, []),
]  # fmt: skip


def _written(**said: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    request = openai.CLIENT.read_request({"model": "m", **said}, model=None, stream=None)
    written = SPOKEN.write_request(request, endpoint=ENDPOINT, model="theirs")
    assert written.path == "/responses"
    body = json.loads(written.body or b"")
    assert (body.pop("model"), body.pop("store")) == ("theirs", False)
    return body, written.left_out


def test_messages_are_written_as_items() -> None:
    body, left_out = _written(messages=[said for said, _ in _SAID])

    assert body == {"input": [item for _, items in _SAID for item in items]}
    assert left_out == ()


@pytest.mark.parametrize(("said", "written", "left_out"), _WISHES)
def test_wishes_are_written_in_this_apis_words(
    said: dict[str, Any], written: dict[str, Any], left_out: list[str]
) -> None:
    body, sentences = _written(messages=[{"role": "user", "content": "Hi"}], **said)

    assert body == {"input": [{"role": "user", "content": "Hi"}], **written}
    assert len(sentences) == len(left_out)
    assert all(map(str.startswith, sentences, left_out))


def test_what_it_cannot_say_is_refused() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}

    with pytest.raises(CannotTranslate, match="type input_audio cannot be said in the Responses"):
        _written(messages=[{"role": "user", "content": [audio]}])
