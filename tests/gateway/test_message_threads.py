"""Anthropic's message threads: requests that hold only what is new since a reply.

The official SDK's runner of tools makes them by itself (tried with 2.12.0 and 2.14.0), whatever
model it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from tests.gateway.clients import AnthropicClient, open_client
from tests.gateway.world import PROMPT, STRANGER, World, model_of, open_http
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

PATH = "/v1/messages"
CREATE: dict[str, Any] = {"thread": {"type": "create"}}
BETA, VERSION = "message-threads-2026-08-12", "2023-06-01"


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[AnthropicClient]:
    with open_client("anthropic", world.url, world.key) as client:
        yield client


def look(city: str, days: int) -> str:
    """Look at the weather.

    Args:
        city: where
        days: how far ahead
    """
    return f"{city}: rain for {days} days."


def asked(model: str, text: str = "Hello?", **more: Any) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 99,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


def send(world: World, body: dict[str, Any]) -> httpx.Response:
    return world.post(PATH, body, anthropic_beta=BETA, anthropic_version=VERSION)


def on_from(reply_id: str) -> dict[str, Any]:
    return {"thread": {"type": "continue", "previous_message_id": reply_id}}


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "ollama"])
def test_the_sdks_runner_of_tools_works_with_any_model(
    client: AnthropicClient, world: World, provider: str, mark: str
) -> None:
    """Where no thread can be kept it is told so in Anthropic's words, and sends all from then."""
    model = model_of(provider, "plain", mark)

    reply = client.sdk.beta.messages.tool_runner(
        model=model,
        max_tokens=99,
        tools=[anthropic.beta_tool(look)],
        messages=[{"role": "user", "content": f"Weather? {mark}"}],
    ).until_done()

    assert reply.content[0].text == WHOLE
    is_kept = provider == "anthropic"
    calls = world.calls_to(model, count=2 if is_kept else 3)
    answered = [call for call in reversed(calls) if call["cause"] is None]
    assert [call["finish_reason"] for call in answered] == ["tool_calls", "stop"]
    assert {call["usage"]["prompt_tokens"] for call in answered} == {PROMPT}
    assert len({call["conversation"] for call in calls}) == 1
    seen = [each.json for each in world.fleet[provider].seen(mark)]
    assert len(seen) == 2
    assert ["thread" in body for body in seen] == [is_kept] * 2


def test_a_thread_is_one_conversation(world: World, mark: str) -> None:
    model = model_of("anthropic", "plain", mark)

    def say(text: str, **more: Any) -> tuple[str, Any]:
        answer = send(world, asked(model, text, **more))
        return answer.json()["id"], world.call_of(answer)

    first_id, first = say(f"One {mark}", **CREATE)
    second_id, second = say("word " * 20_000, **on_from(first_id))
    _, third = say("Three", **on_from(second_id))
    _, branch = say("Two and a half", **on_from(first_id))

    calls = (first, second, third)
    assert {call["conversation"] for call in calls} == {first["conversation"]}
    assert [call["generation"] for call in calls] == [1, 2, 3]
    assert [call["placed_by"] for call in calls[1:]] == ["kept-reply-1 continue"] * 2
    assert branch["placed_by"] == "kept-reply-1 branch"
    # Its bytes are not what the model reads.
    assert second["health"]["level"] == "healthy"
    assert second.get("suspected_cut") in (None, {})


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_where_no_thread_is_kept_a_client_is_told_to_send_all(
    world: World, provider: str, mark: str
) -> None:
    model = model_of(provider, "plain", mark)

    made = send(world, asked(model, **CREATE))
    went_on = send(world, asked(model, **on_from("msg_1")))
    odd = send(world, asked(model, thread="msg_1"))

    told = [(each.status_code, each.json()["error"].get("details")) for each in (made, went_on)]
    assert told == [
        (400, {"error_code": "thread_unsupported_request"}),
        (404, {"error_code": "thread_not_found"}),
    ]
    assert made.json()["error"]["type"] == "invalid_request_error"
    assert went_on.json()["error"]["type"] == "not_found_error"
    assert made.json()["error"]["message"].startswith("thread: ")
    assert (odd.status_code, odd.json()["error"]["type"]) == (400, "invalid_request_error")
    assert world.fleet[provider].seen(mark) == []
    assert world.call_of(made)["cause"]["rule"] == "request.refused"


def test_a_thread_is_no_other_projects(world: World, mark: str) -> None:
    model = model_of("anthropic", "plain", mark)
    made = send(world, asked(model, **CREATE)).json()["id"]

    spelled = {"anthropic-beta": BETA, "anthropic-version": VERSION}
    with open_http(world.url, STRANGER) as stranger:
        refused = stranger.post(PATH, json=asked(model, **on_from(made)), headers=spelled)
    nobodys = send(world, asked(model, **on_from("msg_of_nobody")))
    own = send(world, asked(model, **on_from(made)))

    for answer in (refused, nobodys):
        assert answer.status_code == 404, answer.text
        assert answer.json()["error"]["details"] == {"error_code": "thread_not_found"}
    assert own.status_code == 200
    assert len(world.fleet.anthropic.seen(mark)) == 2
    # What is no response cannot be asked for as one.
    assert world.http.get(f"/v1/responses/{made}").status_code == 404
    assert len(world.fleet.anthropic.seen(made)) == 1
