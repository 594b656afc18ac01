"""The official anthropic SDK, unmodified but for base URL and key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.gateway.clients import AnthropicClient, open_client
from tests.gateway.world import World, model_of, open_http
from tests.support.upstreams.anthropic import COUNTED_TOKENS
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

HELLO: Any = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[AnthropicClient]:
    with open_client("anthropic", world.url, world.key) as client:
        yield client


@pytest.fixture
def sdk(client: AnthropicClient) -> anthropic.Anthropic:
    return client.sdk


def test_either_way_of_giving_the_key(world: World) -> None:
    plain = {"x-api-key": world.key, "anthropic-version": "2023-06-01"}
    body = {"model": model_of("anthropic"), "max_tokens": 9, "messages": HELLO}
    with (
        anthropic.Anthropic(base_url=world.url, auth_token=world.key, max_retries=0) as client,
        open_http(world.url, world.key) as http,
    ):
        message = client.messages.create(**body)
        del http.headers["authorization"]
        older = http.post("/v1/messages", json=body, headers=plain)

    assert message.content[0].text == WHOLE
    assert older.json()["content"][0]["text"] == WHOLE


def test_a_bare_model_and_a_system_prompt_in_blocks(
    sdk: anthropic.Anthropic, world: World, mark: str
) -> None:
    cached: Any = [
        {"type": "text", "text": f"Be kind. {mark}", "cache_control": {"type": "ephemeral"}}
    ]
    sdk.messages.create(model="claude-cached", max_tokens=9, system=cached, messages=HELLO)

    (seen,) = world.fleet.anthropic.seen(mark)
    assert seen.json["system"] == cached
    call = world.call_to("claude-cached")
    assert call["provider"] == "anthropic"
    usage = call["usage"]
    assert (usage["prompt_tokens"], usage["cached_tokens"]) == (1200, 1000)
    assert usage["cache_write_tokens"] == 100


def test_the_vendors_own_headers_pass_and_nothing_else(
    sdk: anthropic.Anthropic, world: World, mark: str
) -> None:
    sdk.messages.create(
        model=model_of("anthropic", "plain", mark),
        max_tokens=9,
        messages=HELLO,
        extra_headers={"anthropic-beta": "context-1m-2025-08-07", "x-other": "secret"},
    )

    (seen,) = world.fleet.anthropic.seen(mark)
    assert seen.header("anthropic-version")
    assert seen.header("anthropic-beta") == "context-1m-2025-08-07"
    assert seen.header("x-other") is None


def test_thinking_keeps_its_signature(sdk: anthropic.Anthropic, mark: str) -> None:
    with sdk.messages.stream(
        model=model_of("anthropic", "reasoning", mark), max_tokens=9, messages=HELLO
    ) as stream:
        message = stream.get_final_message()

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].signature == "U2ltU2lnbmVk"


def test_count_tokens(sdk: anthropic.Anthropic, world: World, mark: str) -> None:
    there = sdk.messages.count_tokens(
        model=model_of("anthropic", "plain", mark), messages=HELLO, system="Be kind."
    )
    elsewhere = sdk.messages.count_tokens(model=model_of("openai", "plain", mark), messages=HELLO)

    assert there.input_tokens == COUNTED_TOKENS
    (seen,) = world.fleet.anthropic.seen(mark)
    assert seen.path == "/v1/messages/count_tokens"
    # OpenAI counts nothing in advance: estimated, and nothing is sent.
    assert 0 < elsewhere.input_tokens < 100
    assert world.fleet.openai.seen(mark) == []


def test_models(sdk: anthropic.Anthropic) -> None:
    assert {"anthropic/claude-plain", "openai/gpt-plain"} <= {m.id for m in sdk.models.list()}


@pytest.mark.parametrize(
    ("provider", "behaviour", "error", "kind"),
    [
        ("anthropic", "busy", "RateLimitError", "rate_limit_error"),
        ("anthropic", "overflow", "BadRequestError", "invalid_request_error"),
        ("anthropic", "no-such-model", "NotFoundError", "not_found_error"),
        # another API behind
        ("openai", "busy", "RateLimitError", "rate_limit_error"),
        ("openai", "overflow", "BadRequestError", "invalid_request_error"),
        ("gemini", "overflow", "BadRequestError", "invalid_request_error"),
        ("ollama", "no-such-model", "NotFoundError", "not_found_error"),
    ],
)
def test_an_upstreams_error_is_the_sdks_own(
    sdk: anthropic.Anthropic, world: World, provider: str, behaviour: str, error: str, kind: str
) -> None:
    with pytest.raises(getattr(anthropic, error)) as caught:
        sdk.messages.create(model=model_of(provider, behaviour), max_tokens=9, messages=HELLO)

    assert caught.value.body["type"] == "error"
    said = caught.value.body["error"]
    assert said["type"] == kind
    if behaviour == "overflow":
        # Claude Code reads both numbers out of these words, whoever has refused.
        assert re.match(r"prompt is too long: \d+ tokens > \d+ maximum", said["message"])
    assert world.call_of(caught.value.response)["status"] == "error"


def test_our_own_errors_are_the_sdks_own(world: World, sdk: anthropic.Anthropic, mark: str) -> None:
    with (
        open_client("anthropic", world.url, "hd_wrong") as stranger,
        pytest.raises(anthropic.AuthenticationError),
    ):
        stranger.chat(model_of("anthropic"))
    with pytest.raises(anthropic.NotFoundError) as unknown:
        sdk.messages.create(model=f"no-such-{mark}", max_tokens=9, messages=HELLO)
    assert unknown.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        sdk.messages.create(model=model_of("anthropic"), max_tokens="nine", messages=HELLO)


def test_a_request_over_its_budget_is_refused_before_it_is_sent(
    sdk: anthropic.Anthropic, world: World, mark: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        sdk.messages.create(
            model=model_of("anthropic", "tiny", mark),
            max_tokens=9,
            messages=[{"role": "user", "content": "word " * 200}],
            extra_headers={"x-helmdash-budget": "enforce"},
        )

    assert world.fleet.anthropic.seen(mark) == []
    assert world.call_to(model_of("anthropic", "tiny", mark))["cause"]["name"] == "context_overflow"
