"""Every client's API against every provider's: what is asked arrives, what is said comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.clients import (
    DESCRIPTION,
    QUESTION,
    RESULT,
    SYSTEM,
    TOOL,
    Client,
    Said,
)
from tests.gateway.world import COMPLETION, PROMPT, PROVIDERS, RESPONSES, World, model_of
from tests.support.upstreams.fleet import KEYS
from tests.support.upstreams.http import Seen
from tests.support.upstreams.plays import WHOLE

pytestmark = [
    pytest.mark.xdist_group("gateway"),
    pytest.mark.parametrize("provider", [*PROVIDERS, RESPONSES]),
    pytest.mark.parametrize("shape", [*PROVIDERS, RESPONSES]),
]

ZURICH = (TOOL, {"city": "Zürich", "days": 3})
REYKJAVIK = (TOOL, {"city": "Reykjavík", "days": 3})
# How each API says that a reply is over, and that a tool is wanted.
STOP = {
    "openai": "stop",
    "anthropic": "end_turn",
    "gemini": "STOP",
    "ollama": "stop",
    RESPONSES: "completed",
}
TOOLS = {**STOP, "openai": "tool_calls", "anthropic": "tool_use"}


@pytest.mark.parametrize("verb", ["chat", "stream"])
def test_a_question_and_its_answer(
    world: World, clients: dict[str, Client], shape: str, provider: str, verb: str, mark: str
) -> None:
    model = model_of(provider, "plain", mark)

    said: Said = getattr(clients[shape], verb)(model)

    assert (said.text, said.finish) == (WHOLE, STOP[shape])
    assert (said.prompt, said.completion) == (PROMPT, COMPLETION)
    seen = answered_request(world, provider, mark)
    assert QUESTION in seen.text
    assert SYSTEM in seen.text
    assert KEYS[provider] in seen.text.partition("\n\n")[0]
    assert world.key not in seen.text
    call = world.call_to(model)
    check_record(call, provider=provider, raw=STOP[provider])
    assert call["finish_reason"] == "stop"
    assert call["raw_content_len"] == len(WHOLE.encode())


@pytest.mark.parametrize("verb", ["use_tools", "stream_tools"])
def test_tools_are_offered_and_called(
    world: World, clients: dict[str, Client], shape: str, provider: str, verb: str, mark: str
) -> None:
    model = model_of(provider, "two-tools", mark)

    said: Said = getattr(clients[shape], verb)(model)

    assert said.tools == (ZURICH, REYKJAVIK)
    assert said.finish == TOOLS[shape]
    seen = answered_request(world, provider, mark)
    assert DESCRIPTION in seen.text
    call = world.call_to(model)
    check_record(call, provider=provider, raw=TOOLS[provider])
    assert call["finish_reason"] in {"stop", "tool_calls"}
    assert call["composition"]["tools"] == call["sent"]["tools_bytes"] > 100
    offered = world.call(call["id"])["offered"]
    assert (offered["count"], list(offered["by_name"])) == (1, ["get_weather"])
    assert 100 < offered["by_name"]["get_weather"] < call["sent"]["tools_bytes"]


def test_a_tools_result_is_carried_back(
    world: World, clients: dict[str, Client], shape: str, provider: str, mark: str
) -> None:
    model = model_of(provider, "plain", mark)

    said = clients[shape].tell_results(model)

    assert said.text == WHOLE
    seen = answered_request(world, provider, mark)
    assert RESULT in seen.text
    assert "Zürich" in json.dumps(seen.json, ensure_ascii=False)
    check_record(world.call_to(model), provider=provider, raw=STOP[provider])


def test_an_image_is_carried(
    world: World, clients: dict[str, Client], shape: str, provider: str, mark: str
) -> None:
    model = model_of(provider, "plain", mark)

    said = clients[shape].look(model)

    assert said.text == "I see 1 image(s)."
    assert world.call_to(model)["sent"]["images"] == 1


def test_json_of_a_schema(
    world: World, clients: dict[str, Client], shape: str, provider: str, mark: str
) -> None:
    model = model_of(provider, "plain", mark)

    said = clients[shape].want_json(model)

    assert set(json.loads(said.text)) == {"city", "days"}
    call = world.call_to(model)
    check_record(call, provider=provider, raw=None)
    assert call["response_format"] == "json_schema"


@pytest.mark.parametrize("verb", ["chat", "stream"])
def test_reasoning_is_told_apart_from_the_answer(
    world: World, clients: dict[str, Client], shape: str, provider: str, verb: str, mark: str
) -> None:
    model = model_of(provider, "reasoning", mark)

    said: Said = getattr(clients[shape], verb)(model)

    assert said.text == WHOLE
    check_record(world.call_to(model), provider=provider, raw=STOP[provider])


def test_characters_cut_anywhere_arrive_whole(
    clients: dict[str, Client], shape: str, provider: str, mark: str
) -> None:
    assert clients[shape].stream(model_of(provider, "crumbs", mark)).text == WHOLE


def answered_request(world: World, provider: str, mark: str) -> Seen:
    """The one request that was answered; before it may stand the one look whether the upstream has
    Responses, which is the work of whichever test comes first.
    """
    *looks, seen = world.fleet[provider].seen(mark)
    assert [(each.target, each.status) for each in looks] in ([], [("/v1/responses", 404)])
    return seen


def check_record(call: dict[str, Any], *, provider: str, raw: str | None) -> None:
    """What the record of every good call of a simulated model says."""
    assert call["status"] == "success"
    assert call["cause"] is None
    assert call["provider"] == provider
    assert call["http_status"] == 200
    assert (call["usage"]["prompt_tokens"], call["usage"]["completion_tokens"]) == (
        PROMPT,
        COMPLETION,
    )
    assert call["health"]["level"] == "healthy"
    assert call["latency_ms"] >= 0
    assert call["overhead_ms"] >= 0
    if raw is not None:
        assert call["finish_reason_raw"] == raw
