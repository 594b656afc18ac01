"""What is refused before anything is sent, and how it is told and recorded."""

from __future__ import annotations

import socket
import time

import pytest

from tests.gateway.world import World, model_of

pytestmark = pytest.mark.xdist_group("gateway")

USER = [{"role": "user", "content": "Say something."}]


def test_a_wrong_method_is_told_which_is_right(world: World) -> None:
    answer = world.http.get("/v1/chat/completions")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_request_over_its_budget_is_recorded_as_ours_and_not_the_providers(world: World) -> None:
    model = model_of("openai", "tiny", mark="ours")
    body = {"model": model, "messages": [{"role": "user", "content": "word " * 4000}]}

    answer = world.post("/v1/chat/completions", body, x_helmdash_budget="enforce")

    call = world.call_of(answer)
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert (call["cause"]["name"], call["cause"]["rule"]) == ("context_overflow", "context.budget")
    assert (call["error_code"], call["http_status"]) == ("over_budget", None)
    assert world.fleet.openai.seen(model.partition("/")[2]) == []


def test_embeddings_are_held_against_their_budget_too(world: World) -> None:
    model = model_of("openai", "tiny", mark="vectors")

    answer = world.post(
        "/v1/embeddings", {"model": model, "input": "word " * 4000}, x_helmdash_budget="enforce"
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("member", [{"n": 2}, {"logprobs": True}])
@pytest.mark.parametrize("provider", ["anthropic", "gemini", "ollama"])
def test_what_another_format_cannot_say_is_refused_and_named(
    world: World, provider: str, member: dict[str, object]
) -> None:
    body = {"model": model_of(provider), "messages": USER, **member}

    answer = world.post("/v1/chat/completions", body)

    assert answer.status_code == 400
    assert next(iter(member)) in answer.json()["error"]["message"]


def test_whoever_is_turned_away_at_the_door_is_not_read(world: World) -> None:
    host, port = world.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer wrong\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        answer = client.recv(65536)
        assert b" 401 " in answer
        assert b"connection: close" in answer.lower()
        deadline = time.monotonic() + 10
        while client.recv(65536):
            assert time.monotonic() < deadline
