"""The official openai SDK, unmodified but for base URL and key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.clients import OpenAIClient, open_client
from tests.gateway.world import PROVIDERS, World, model_of
from tests.support.upstreams.openai import VECTOR
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

HELLO: Any = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[OpenAIClient]:
    with open_client("openai", world.url, world.key) as client:
        yield client


@pytest.fixture
def sdk(client: OpenAIClient) -> openai.OpenAI:
    sdk: openai.OpenAI = client.sdk
    return sdk


def test_headers_tell_the_call_its_level_and_our_time(sdk: openai.OpenAI, world: World) -> None:
    for behaviour, level in (
        ("plain", "healthy"),
        ("caution", "caution"),
        ("critical", "critical"),
    ):
        answer = sdk.chat.completions.with_raw_response.create(
            model=model_of("openai", behaviour), messages=HELLO
        )

        assert answer.parse().choices[0].message.content == WHOLE
        assert answer.headers["x-helmdash-level"] == level
        assert 0 <= float(answer.headers["x-helmdash-overhead-ms"]) < 1000
        call = world.call_of(answer)
        assert call["health"]["level"] == level
        assert call["upstream_model"] == f"gpt-{behaviour}-2026-01-01"
        assert call["caller"] is not None


@pytest.mark.parametrize("streams", [False, True])
def test_a_call_can_be_read_as_soon_as_its_answer_is_there(
    sdk: openai.OpenAI, world: World, streams: bool, mark: str
) -> None:
    name = f"at-once-{mark}"
    own = "/conversations/{name}"
    paths = ["/calls/{id}", "/calls?conversation={name}", own, f"{own}/timeline"]
    for number, path in enumerate(paths * 2, start=1):
        answer: Any = sdk.chat.completions.with_raw_response.create(
            model=model_of("openai", "plain"),
            messages=HELLO,
            stream=streams,
            # Two alike, streamed, would be attempts at one generation.
            temperature=number / 10,
            extra_headers={"x-helmdash-conversation": name},
        )
        if streams:
            assert list(answer.parse())
        call_id = answer.headers["x-helmdash-call-id"]

        found = world.api.get(path.format(id=call_id, name=name))

        assert found.status_code == 200, (path, found.text)
        told = found.json()
        assert max(each["generation"] for each in told.get("items", [told])) == number, path


def test_a_bare_model_goes_to_the_upstream_that_lists_it(sdk: openai.OpenAI, world: World) -> None:
    for model, provider in (
        ("gpt-plain", "openai"),
        ("claude-plain", "anthropic"),
        ("gemini-plain", "gemini"),
        ("llama-plain", "ollama"),
    ):
        answer = sdk.chat.completions.with_raw_response.create(model=model, messages=HELLO)

        call = world.call_of(answer)
        assert (call["model"], call["provider"]) == (model, provider)
        assert call["health"]["level"] == "healthy"


def test_all_models_are_listed(sdk: openai.OpenAI) -> None:
    listed = {model.id for model in sdk.models.list()}

    assert {model_of(provider) for provider in PROVIDERS} <= listed


def test_json_mode_and_parsed_replies(sdk: openai.OpenAI, world: World, mark: str) -> None:
    class Weather(BaseModel):
        city: str

    model = model_of("openai", "plain", mark)
    free = sdk.chat.completions.create(
        model=model, messages=HELLO, response_format={"type": "json_object"}
    )
    parsed = sdk.chat.completions.parse(model=model, messages=HELLO, response_format=Weather)

    assert free.choices[0].message.content == '{"answer": "answer \\u2713"}'
    assert parsed.choices[0].message.parsed == Weather(city="city ✓")
    second, first = world.calls_to(model, count=2)
    assert (first["response_format"], second["response_format"]) == ("json_object", "json_schema")


@pytest.mark.parametrize(
    "model", ["openai/text-embedding-sim", "gemini/gemini-embedding-sim", "ollama/sim-embed"]
)
# Left out, the SDK asks for base64 and decodes it.
@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}])
def test_embeddings(
    sdk: openai.OpenAI, world: World, model: str, options: dict[str, Any], mark: str
) -> None:
    answer = sdk.embeddings.with_raw_response.create(
        model=model, input=["one", f"two {mark}"], **options
    )

    embeddings = answer.parse().data
    assert [tuple(each.embedding) for each in embeddings] == [VECTOR, VECTOR]
    (seen,) = world.fleet[model.partition("/")[0]].seen(mark)
    assert "one" in seen.text
    call = world.call_of(answer)
    assert (call["model"], call["status"], call["cause"]) == (model, "success", None)
    # Gemini reports no usage of embeddings.
    assert call["usage"]["prompt_tokens"] == (None if model.startswith("gemini") else 8)


def test_embeddings_of_a_vendor_that_has_none(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="embed"):
        sdk.embeddings.create(model="anthropic/claude-plain", input="one")


def test_members_we_do_not_know_pass_through(sdk: openai.OpenAI, world: World, mark: str) -> None:
    own = {"x_flag": {"deep": [1.50, None, "ü"]}, "verbosity": "low"}
    sdk.chat.completions.create(
        model=model_of("openai", "plain", mark), messages=HELLO, extra_body=own
    )

    (seen,) = world.fleet.openai.seen(mark)
    assert {name: seen.json[name] for name in own} == own
    assert b"1.5" in seen.body


def test_cached_and_reasoning_tokens_are_recorded(sdk: openai.OpenAI, world: World) -> None:
    for provider, behaviour, name, tokens in (
        ("openai", "cached", "cached_tokens", 1000),
        ("anthropic", "cached", "cached_tokens", 1000),
        ("anthropic", "cached", "cache_write_tokens", 100),
        ("gemini", "cached", "cached_tokens", 1000),
        ("openai", "reasoning", "reasoning_tokens", 20),
        ("gemini", "reasoning", "reasoning_tokens", 20),
    ):
        answer = sdk.chat.completions.with_raw_response.create(
            model=model_of(provider, behaviour), messages=HELLO
        )

        usage = world.call_of(answer)["usage"]
        assert usage[name] == tokens
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (1200, 34)
        told = answer.parse().usage
        assert told is not None
        assert (told.prompt_tokens, told.completion_tokens) == (1200, 34)


def test_the_asynchronous_client(world: World, mark: str) -> None:
    async def ask() -> str:
        async with openai.AsyncOpenAI(
            base_url=f"{world.url}/v1", api_key=world.key, max_retries=0
        ) as client:
            model = model_of("openai", "plain", mark)
            stream = await client.chat.completions.create(model=model, messages=HELLO, stream=True)
            return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    assert asyncio.run(ask()) == WHOLE


@pytest.mark.parametrize(
    ("provider", "behaviour", "error", "status"),
    [
        # the same API behind: its words are handed on
        ("openai", "busy", "RateLimitError", 429),
        ("openai", "overflow", "BadRequestError", 400),
        ("openai", "no-such-model", "NotFoundError", 404),
        ("openai", "html", "InternalServerError", 502),
        # another API behind: its error in OpenAI's shape
        ("anthropic", "busy", "RateLimitError", 429),
        ("anthropic", "overflow", "BadRequestError", 400),
        ("gemini", "busy", "RateLimitError", 429),
        ("gemini", "overflow", "BadRequestError", 400),
        ("ollama", "overflow", "BadRequestError", 400),
        ("ollama", "no-such-model", "NotFoundError", 404),
    ],
)
def test_an_upstreams_error_is_the_sdks_own(
    sdk: openai.OpenAI, world: World, provider: str, behaviour: str, error: str, status: int
) -> None:
    with pytest.raises(getattr(openai, error)) as caught:
        sdk.chat.completions.create(model=model_of(provider, behaviour), messages=HELLO)

    assert caught.value.status_code == status
    assert caught.value.message
    if behaviour == "busy":
        assert caught.value.response.headers["retry-after"] == "30"
    if behaviour == "overflow":
        assert caught.value.code == "context_length_exceeded"
    call = world.call_of(caught.value.response)
    assert (call["status"], call["http_status"]) == ("error", status)


def test_our_own_errors_are_the_sdks_own(world: World, sdk: openai.OpenAI, mark: str) -> None:
    with (
        open_client("openai", world.url, "hd_wrong") as stranger,
        pytest.raises(openai.AuthenticationError, match="API key"),
    ):
        stranger.chat(model_of("openai"))
    with pytest.raises(openai.NotFoundError) as unknown:
        sdk.chat.completions.create(model=f"no-such-{mark}", messages=HELLO)
    assert unknown.value.code == "model_not_found"
    assert world.call_of(unknown.value.response)["cause"]["name"] == "bad_request"
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.create(model=f"nobody/{mark}", messages=HELLO)
    with pytest.raises(openai.BadRequestError, match="messages"):
        sdk.chat.completions.create(model=model_of("openai"), messages=cast(Any, "Hello?"))


def test_a_request_over_its_budget_is_refused_before_it_is_sent(
    sdk: openai.OpenAI, world: World, mark: str
) -> None:
    model = model_of("openai", "tiny", mark)
    long: Any = [{"role": "user", "content": "word " * 200}]

    with pytest.raises(openai.BadRequestError) as refused:
        sdk.chat.completions.create(
            model=model, messages=long, extra_headers={"x-helmdash-budget": "enforce"}
        )

    assert refused.value.code == "context_length_exceeded"
    assert world.fleet.openai.seen(mark) == []
    call = world.call_to(model)
    assert call["cause"]["name"] == "context_overflow"
    for mode in ("observe", "warn"):
        answer = sdk.chat.completions.with_raw_response.create(
            model=model, messages=long, extra_headers={"x-helmdash-budget": mode}
        )
        warning = answer.headers.get("x-helmdash-budget-warning")
        assert (warning is not None) == (mode == "warn")
    assert len(world.fleet.openai.seen(mark)) == 2
