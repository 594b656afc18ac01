"""The official google-genai SDK, unmodified but for base URL and key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google import genai

from tests.gateway.clients import GeminiClient, open_client
from tests.gateway.world import World, model_of
from tests.support.upstreams.gemini import COUNTED_TOKENS
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[GeminiClient]:
    with open_client("gemini", world.url, world.key) as client:
        yield client


@pytest.fixture
def sdk(client: GeminiClient) -> genai.Client:
    return client.sdk


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_both_versions_of_the_path_and_a_bare_model(world: World, version: str) -> None:
    options = genai.types.HttpOptions(base_url=world.url, api_version=version)
    with genai.Client(api_key=world.key, http_options=options) as sdk:
        answer = sdk.models.generate_content(model="gemini-plain", contents="Hello?")
        pieces = list(sdk.models.generate_content_stream(model="gemini-plain", contents="Hello?"))

    assert answer.text == WHOLE
    assert answer.sdk_http_response is not None
    assert answer.sdk_http_response.headers is not None
    call = world.call(answer.sdk_http_response.headers["x-helmdash-call-id"])
    assert (call["provider"], call["model"]) == ("gemini", "gemini-plain")
    assert "".join(piece.text or "" for piece in pieces) == WHOLE
    assert pieces[-1].usage_metadata is not None
    assert pieces[-1].usage_metadata.total_token_count == 1234


def test_a_chat_with_a_history(sdk: genai.Client, world: World, mark: str) -> None:
    chat = sdk.chats.create(model=model_of("gemini", "plain", mark))
    chat.send_message("Hello?")
    chat.send_message("And again?")

    _, second = world.fleet.gemini.seen(mark)
    said = [content["parts"][0]["text"] for content in second.json["contents"]]
    assert said == ["Hello?", WHOLE, "And again?"]


def test_settings_of_its_own_pass_through(sdk: genai.Client, world: World, mark: str) -> None:
    config = genai.types.GenerateContentConfig(
        temperature=0.25,
        top_k=7,
        stop_sequences=["END"],
        safety_settings=[
            genai.types.SafetySetting(
                category=genai.types.HarmCategory.HARM_CATEGORY_HARASSMENT,
                threshold=genai.types.HarmBlockThreshold.BLOCK_ONLY_HIGH,
            )
        ],
        thinking_config=genai.types.ThinkingConfig(thinking_budget=0),
    )
    sdk.models.generate_content(
        model=model_of("gemini", "plain", mark), contents="Hello?", config=config
    )

    (seen,) = world.fleet.gemini.seen(mark)
    generation = seen.json["generationConfig"]
    assert generation["topK"] == 7
    assert generation["stopSequences"] == ["END"]
    assert "BLOCK_ONLY_HIGH" in seen.text


def test_count_tokens(sdk: genai.Client, world: World, mark: str) -> None:
    there = sdk.models.count_tokens(model=model_of("gemini", "plain", mark), contents="Hello?")
    elsewhere = sdk.models.count_tokens(model=model_of("openai", "plain", mark), contents="Hello?")

    assert there.total_tokens == COUNTED_TOKENS
    assert elsewhere.total_tokens is not None
    assert 0 < elsewhere.total_tokens < 100
    assert world.fleet.openai.seen(mark) == []


def test_models(sdk: genai.Client) -> None:
    assert {"models/gemini/gemini-plain", "models/openai/gpt-plain"} <= {
        model.name for model in sdk.models.list()
    }


def test_a_blocked_prompt_says_why(sdk: genai.Client, world: World, mark: str) -> None:
    model = model_of("gemini", "blocked", mark)
    answer = sdk.models.generate_content(model=model, contents="Hello?")

    assert answer.prompt_feedback is not None
    assert answer.prompt_feedback.block_reason == genai.types.BlockedReason.PROHIBITED_CONTENT
    call = world.call_to(model)
    assert call["cause"]["name"] == "safety_filtered"
    assert call["finish_reason_raw"] == "PROHIBITED_CONTENT"


@pytest.mark.parametrize(
    ("provider", "behaviour", "error", "status"),
    [
        ("gemini", "busy", "ClientError", "RESOURCE_EXHAUSTED"),
        ("gemini", "overflow", "ClientError", "INVALID_ARGUMENT"),
        ("gemini", "no-such-model", "ClientError", "NOT_FOUND"),
        # another API behind
        ("openai", "busy", "ClientError", "RESOURCE_EXHAUSTED"),
        ("openai", "overflow", "ClientError", "INVALID_ARGUMENT"),
        ("anthropic", "overloaded", "ServerError", "UNAVAILABLE"),
        ("ollama", "no-such-model", "ClientError", "NOT_FOUND"),
    ],
)
def test_an_upstreams_error_is_the_sdks_own(
    sdk: genai.Client,
    world: World,
    provider: str,
    behaviour: str,
    error: str,
    status: str,
    mark: str,
) -> None:
    model = model_of(provider, behaviour, mark)
    with pytest.raises(getattr(genai.errors, error)) as caught:
        sdk.models.generate_content(model=model, contents="Hello?")

    assert caught.value.status == status
    assert world.call_to(model)["status"] == "error"


def test_our_own_errors_are_the_sdks_own(world: World, sdk: genai.Client, mark: str) -> None:
    with (
        open_client("gemini", world.url, "hd_wrong") as stranger,
        pytest.raises(genai.errors.ClientError) as refused,
    ):
        stranger.chat(model_of("gemini"))
    assert (refused.value.code, refused.value.status) == (401, "UNAUTHENTICATED")
    with pytest.raises(genai.errors.ClientError) as unknown:
        sdk.models.generate_content(model=f"no-such-{mark}", contents="Hello?")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")


def test_a_request_over_its_budget_is_refused_before_it_is_sent(
    sdk: genai.Client, world: World, mark: str
) -> None:
    options = genai.types.HttpOptions(headers={"x-helmdash-budget": "enforce"})
    with pytest.raises(
        genai.errors.ClientError, match="exceeds the maximum number of tokens"
    ) as refused:
        sdk.models.generate_content(
            model=model_of("gemini", "tiny", mark),
            contents="word " * 200,
            config=genai.types.GenerateContentConfig(http_options=options),
        )

    assert (refused.value.code, refused.value.status) == (400, "INVALID_ARGUMENT")
    assert world.fleet.gemini.seen(mark) == []
