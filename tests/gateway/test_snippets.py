"""The snippets of the set-up page do what they say: run as they stand there."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai

from helmdash.pages.parts.client_snippets import Snippet, clients
from tests.gateway.world import World, model_of
from tests.support.postponed import load
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

VARIABLES = (
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "OLLAMA_HOST",
    "OLLAMA_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
)


@pytest.fixture(autouse=True)
def _key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HELMDASH_API_KEY", world.key)


def snippets(world: World, client: str, mark: str) -> tuple[Snippet, ...]:
    """Those of one client, for a model that is another provider's."""
    provider = "openai" if client == "anthropic" else "anthropic"
    model = model_of(provider, mark=mark)
    return next(each.snippets for each in clients(world.url, model) if each.id == client)


@pytest.mark.parametrize("client", ["openai", "anthropic", "ollama", "gemini"])
def test_python_runs_and_the_call_is_recorded(
    world: World, mark: str, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    load(anthropic, genai, ollama, openai)
    python = snippets(world, client, mark)[0]
    provider = "openai" if client == "anthropic" else "anthropic"

    names: dict[str, Any] = {}
    exec(compile(python.text, python.id, "exec"), names)
    names["client"].close()

    assert WHOLE in capsys.readouterr().out
    assert world.call_to(model_of(provider, mark=mark))["finish_reason"] == "stop"


def test_curl_runs_whole_and_streamed(world: World, mark: str) -> None:
    whole, streamed = (
        subprocess.run(["bash", "-c", each.text], capture_output=True, text=True, timeout=30)
        for each in snippets(world, "curl", mark)
    )

    assert "x-helmdash-call-id: " in whole.stdout
    assert WHOLE in whole.stdout
    assert streamed.stdout.startswith("data: ")
    assert streamed.stdout.rstrip().endswith("data: [DONE]")


def test_sdks_read_the_variables_that_are_named(
    world: World, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of("openai", mark=mark)
    agents = {each.id: each.text for each in snippets(world, "variables", mark)}
    for name in ("openai", "anthropic", "ollama", "gemini"):
        for variable, value in _exported(agents[f"variables-{name}"]).items():
            monkeypatch.setenv(variable, value)

    hello: Any = [{"role": "user", "content": "Hello?"}]

    with openai.OpenAI() as sdk:
        chat = sdk.chat.completions.create(model=model, messages=hello)
    with anthropic.Anthropic() as claude:
        message = claude.messages.create(model=model, max_tokens=99, messages=hello)
    with ollama.Client() as local:
        reply = local.chat(model, hello)
    with genai.Client() as google:
        generated = google.models.generate_content(model=model, contents="Hello?")

    said = (
        chat.choices[0].message.content,
        str(message.content),
        reply.message.content,
        generated.text,
    )
    assert [text for text in said if WHOLE not in (text or "")] == []


def _exported(script: str) -> dict[str, str]:
    """What a script of exports adds to the environment, as a shell sees it."""
    done = subprocess.run(
        ["bash", "-c", f"{script}\nenv -0"], capture_output=True, text=True, timeout=10, check=True
    )
    after = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if "=" in pair)
    return {name: after[name] for name in after if os.environ.get(name) != after[name]}
