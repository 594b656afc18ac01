"""The official SDKs through the gateway to a real model on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import openai
import pytest
from google import genai

from tests.gateway.clients import open_client
from tests.gateway.world import open_http
from tests.support.model import LocalModel
from tests.support.server import Served
from tests.support.upstreams.real_ollama import run_real_ollama

pytestmark = pytest.mark.model

QUESTION = "What is the capital of France?"
USER: Any = [{"role": "user", "content": QUESTION}]
# Of 8,192 tokens: every word is one at least.
FAR_TOO_LONG: Any = [{"role": "user", "content": "word " * 9000}]
TOKENS = 16


@pytest.fixture(scope="module")
def house(serve: Callable[..., Served], local_model: LocalModel) -> Iterator[Served]:
    """A HelmDash with the real model behind three of the vendors' APIs."""
    with run_real_ollama(local_model) as ollama:
        yield serve(
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=local_model.base_url,
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=local_model.root_url,
            OLLAMA_HOST=ollama.root_url,
            HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        )


@pytest.fixture(scope="module")
def prompt_tokens(local_model: LocalModel) -> int:
    """What the model itself counts, asked without HelmDash between."""
    body = {"model": local_model.name, "messages": USER, "max_tokens": 1}
    answer = httpx.post(f"{local_model.base_url}/chat/completions", json=body, timeout=60)
    count: int = answer.json()["usage"]["prompt_tokens"]
    return count


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("shape", "provider"),
    [
        ("openai", "openai"),
        ("anthropic", "anthropic"),
        ("ollama", "ollama"),
        ("gemini", "openai"),
        ("anthropic", "openai"),
        ("openai", "ollama"),
    ],
)
def test_an_answer_and_its_record(
    house: Served,
    local_model: LocalModel,
    prompt_tokens: int,
    shape: str,
    provider: str,
    is_streamed: bool,
) -> None:
    started = datetime.now(UTC)
    model = f"{provider}/{local_model.name}"
    with open_client(shape, house.base_url, house.api_key) as client:
        text = _ASK[shape](client.sdk, model, is_streamed)

    assert text.strip()
    call = call_since(house, started)
    assert call["usage"]["prompt_tokens"] == prompt_tokens
    assert 1 <= call["usage"]["completion_tokens"] <= TOKENS
    assert call["finish_reason"] in {"stop", "length"}
    assert (call["status"], call["cause"]) == ("success", None)
    assert call["raw_content_len"] == len(text.encode())
    assert call["latency_ms"] > 0


@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize("tool_choice", ["none", "required"])
def test_a_client_of_the_responses_api_that_declares_tools(
    house: Served, local_model: LocalModel, provider: str, tool_choice: str
) -> None:
    """As agents do; a model may be made to call one."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = {"type": "function", "name": "count", "parameters": schema, "strict": False}
    started = datetime.now(UTC)
    with open_client("openai", house.base_url, house.api_key) as client:
        events = client.sdk.responses.create(
            model=f"{provider}/{local_model.name}",
            instructions="Be brief.",
            input=[{"role": "user", "content": QUESTION}],
            tools=[{"type": "namespace", "name": "own", "description": "Ours.", "tools": [tool]}],
            tool_choice=tool_choice,
            max_output_tokens=64,
            temperature=0,
            stream=True,
            store=False,
        )
        last = [*events][-1]

    assert last.type in ("response.completed", "response.incomplete")
    assert last.response.output
    for item in last.response.output:
        if item.type == "function_call":
            assert (item.namespace, item.name) == ("own", "count")
    call = call_since(house, started)
    assert (call["status"], call["cause"]) == ("success", None)
    assert call["usage"]["prompt_tokens"] == last.response.usage.input_tokens


def test_json_of_a_schema_and_counted_tokens(
    house: Served, local_model: LocalModel, prompt_tokens: int
) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}},
        "required": ["city"],
        "additionalProperties": False,
    }
    with open_client("openai", house.base_url, house.api_key) as client:
        wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
        answer = client.sdk.chat.completions.create(
            model=f"openai/{local_model.name}",
            messages=USER,
            response_format=wanted,
            max_tokens=40,
            temperature=0,
        )
    with open_client("anthropic", house.base_url, house.api_key) as client:
        counted = client.sdk.messages.count_tokens(
            model=f"anthropic/{local_model.name}", messages=USER
        )

    assert set(json.loads(answer.choices[0].message.content)) == {"city"}
    assert counted.input_tokens == prompt_tokens


def test_a_prompt_larger_than_the_window(house: Served, local_model: LocalModel) -> None:
    started = datetime.now(UTC)
    model = f"openai/{local_model.name}"
    with (
        open_client("openai", house.base_url, house.api_key) as client,
        pytest.raises(openai.BadRequestError),
    ):
        client.sdk.chat.completions.create(model=model, messages=FAR_TOO_LONG)

    call = call_since(house, started)
    assert (call["status"], call["cause"]["name"]) == ("error", "context_overflow")


def test_leaving_midway_frees_the_model(house: Served, local_model: LocalModel) -> None:
    started = datetime.now(UTC)
    model = f"openai/{local_model.name}"
    with open_client("openai", house.base_url, house.api_key) as client:
        stream = client.sdk.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "Count from one to a thousand, in words."}],
            stream=True,
            max_tokens=2000,
        )
        for _ in range(3):
            next(iter(stream))
        stream.close()

    deadline = time.monotonic() + 20  # 2,000 tokens take longer
    while is_busy(local_model):
        assert time.monotonic() < deadline, "the model goes on writing for nobody"
        time.sleep(0.05)
    call = call_since(house, started)
    assert (call["status"], call["cause"]["name"]) == ("cancelled", "client_disconnected")
    assert call["ttft_ms"] is not None


def is_busy(model: LocalModel) -> bool:
    slots = httpx.get(f"{model.root_url}/slots", timeout=10, trust_env=False, verify=False)
    return any(slot["is_processing"] for slot in slots.json())


def call_since(house: Served, started: datetime) -> dict[str, Any]:
    """The record of the one call that this test has made."""
    deadline = time.monotonic() + 30
    with open_http(f"{house.base_url}/api/v1", house.api_key) as api:
        while True:
            listed = api.get("/calls", params={"since": started.isoformat()}).raise_for_status()
            if items := listed.json()["items"]:
                found: dict[str, Any] = api.get(f"/calls/{items[0]['id']}").json()
                return found
            assert time.monotonic() < deadline, house.log
            time.sleep(0.02)


def _ask_openai(sdk: Any, model: str, is_streamed: bool) -> str:
    asked = {"model": model, "messages": USER, "max_tokens": TOKENS, "temperature": 0}
    if not is_streamed:
        return str(sdk.chat.completions.create(**asked).choices[0].message.content)
    with sdk.chat.completions.create(**asked, stream=True) as chunks:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def _ask_anthropic(sdk: Any, model: str, is_streamed: bool) -> str:
    asked = {"model": model, "messages": USER, "max_tokens": TOKENS}
    if not is_streamed:
        return "".join(block.text for block in sdk.messages.create(**asked).content)
    with sdk.messages.stream(**asked) as stream:
        return "".join(stream.text_stream)


def _ask_gemini(sdk: Any, model: str, is_streamed: bool) -> str:
    config = genai.types.GenerateContentConfig(max_output_tokens=TOKENS, temperature=0)
    asked = {"model": model, "contents": QUESTION, "config": config}
    if not is_streamed:
        return str(sdk.models.generate_content(**asked).text)
    return "".join(chunk.text or "" for chunk in sdk.models.generate_content_stream(**asked))


def _ask_ollama(sdk: Any, model: str, is_streamed: bool) -> str:
    options = {"num_predict": TOKENS, "temperature": 0}
    if not is_streamed:
        return str(sdk.chat(model, messages=USER, options=options).message.content)
    chunks = sdk.chat(model, messages=USER, options=options, stream=True)
    return "".join(chunk.message.content or "" for chunk in chunks)


_ASK: dict[str, Callable[[Any, str, bool], str]] = {
    "openai": _ask_openai,
    "anthropic": _ask_anthropic,
    "gemini": _ask_gemini,
    "ollama": _ask_ollama,
}
