"""The official ollama SDK, unmodified but for host and key."""

from __future__ import annotations

from collections.abc import Iterator

import ollama
import pytest

from tests.gateway.clients import PIXEL, OllamaClient, open_client
from tests.gateway.world import COMPLETION, PROMPT, PROVIDERS, World, model_of
from tests.support.upstreams.ollama import CONTEXT_LENGTH
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[OllamaClient]:
    with open_client("ollama", world.url, world.key) as client:
        yield client


@pytest.fixture
def sdk(client: OllamaClient) -> ollama.Client:
    return client.sdk


@pytest.mark.parametrize("provider", PROVIDERS)
def test_generate(sdk: ollama.Client, world: World, provider: str, mark: str) -> None:
    model = model_of(provider, "plain", mark)
    answer = sdk.generate(model, "Hello?", system="Be kind.")
    pieces = list(sdk.generate(model, "Hello?", stream=True))

    assert (answer.response, answer.done_reason) == (WHOLE, "stop")
    assert (answer.prompt_eval_count, answer.eval_count) == (PROMPT, COMPLETION)
    assert "".join(piece.response or "" for piece in pieces) == WHOLE
    assert pieces[-1].done is True
    assert (pieces[-1].prompt_eval_count, pieces[-1].eval_count) == (PROMPT, COMPLETION)
    for call in world.calls_to(model, count=2):
        assert (call["provider"], call["cause"]) == (provider, None)
        assert (call["finish_reason"], call["usage"]["prompt_tokens"]) == ("stop", PROMPT)
    assert "Be kind." in world.fleet[provider].seen(mark)[0].text


def test_generate_with_an_image_and_json(sdk: ollama.Client, mark: str) -> None:
    model = model_of("ollama", "plain", mark)

    assert sdk.generate(model, "See?", images=[PIXEL]).response == "I see 1 image(s)."
    assert sdk.generate(model, "Hello?", format="json").response == '{"answer": "answer \\u2713"}'


def test_its_own_options_reach_an_ollama(sdk: ollama.Client, world: World, mark: str) -> None:
    sdk.chat(
        model_of("ollama", "plain", mark),
        messages=[{"role": "user", "content": "Hello?"}],
        options={"num_ctx": 4096, "mirostat": 2},
        keep_alive="5m",
    )

    (seen,) = world.fleet.ollama.seen(mark)
    assert seen.json["options"]["num_ctx"] == 4096
    assert seen.json["options"]["mirostat"] == 2
    assert seen.json["keep_alive"] == "5m"


def test_a_bare_model(sdk: ollama.Client, world: World) -> None:
    answer = sdk.chat("llama-plain", messages=[{"role": "user", "content": "Hello?"}])

    assert answer.message.content == WHOLE
    assert world.call_to("llama-plain")["provider"] == "ollama"


def test_list_and_show(sdk: ollama.Client) -> None:
    listed = {model.model for model in sdk.list().models}
    assert {model_of(provider) for provider in PROVIDERS} <= listed

    shown = sdk.show("ollama/llama-plain")
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == CONTEXT_LENGTH
    assert sdk.show(model_of("openai")).details is not None
    with pytest.raises(ollama.ResponseError) as unknown:
        sdk.show("nobody/nothing")
    assert unknown.value.status_code == 404
    assert sdk.ps().models == []


@pytest.mark.parametrize(
    ("provider", "behaviour", "status"),
    [
        ("ollama", "busy", 429),
        ("ollama", "overflow", 400),
        ("ollama", "no-such-model", 404),
        # another API behind
        ("openai", "busy", 429),
        ("anthropic", "overflow", 400),
        ("gemini", "no-such-model", 404),
    ],
)
def test_an_upstreams_error_is_the_sdks_own(
    sdk: ollama.Client, world: World, provider: str, behaviour: str, status: int, mark: str
) -> None:
    model = model_of(provider, behaviour, mark)
    with pytest.raises(ollama.ResponseError) as caught:
        sdk.chat(model, messages=[{"role": "user", "content": "Hello?"}])

    assert caught.value.status_code == status
    assert "{" not in caught.value.error
    assert world.call_to(model)["status"] == "error"


def test_our_own_errors_are_the_sdks_own(world: World, sdk: ollama.Client, mark: str) -> None:
    with (
        open_client("ollama", world.url, "hd_wrong") as stranger,
        pytest.raises(ollama.ResponseError) as refused,
    ):
        stranger.chat(model_of("ollama"))
    assert refused.value.status_code == 401
    with pytest.raises(ollama.ResponseError) as unknown:
        sdk.generate(f"no-such-{mark}", "Hello?")
    assert unknown.value.status_code == 404


def test_a_request_over_its_budget_is_refused_before_it_is_sent(world: World, mark: str) -> None:
    headers = {"authorization": f"Bearer {world.key}", "x-helmdash-budget": "enforce"}
    model = model_of("ollama", "tiny", mark)
    with (
        ollama.Client(host=world.url, headers=headers) as sdk,
        pytest.raises(ollama.ResponseError, match="exceeded max context length") as refused,
    ):
        sdk.generate(model, "word " * 200)

    assert refused.value.status_code == 400
    assert world.fleet.ollama.seen(mark) == []
    assert world.call_to(model)["cause"]["name"] == "context_overflow"
