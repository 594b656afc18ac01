"""Which endpoint a model goes to."""

from __future__ import annotations

import pytest

from helmdash.core.upstreams.endpoints import Endpoint, EndpointSource, ProviderKind
from helmdash.providers.openai.stream_filter import OpenAIStreamFilter
from helmdash.providers.protocols import Mirror
from helmdash.providers.registry import CLIENTS, UPSTREAMS, choose, family_of
from helmdash.providers.wire import ChatRequest


def make_endpoint(
    name: str,
    *models: str,
    kind: ProviderKind = ProviderKind.OPENAI,
    source: EndpointSource = EndpointSource.ADMIN,
) -> Endpoint:
    url = f"https://{name.lower()}.example/v1"
    return Endpoint(name=name, kind=kind, base_url=url, models=models, source=source)


ENVIRONMENT = EndpointSource.ENVIRONMENT
FLEET = (
    make_endpoint("openai", source=ENVIRONMENT),
    make_endpoint("anthropic", kind=ProviderKind.ANTHROPIC, source=ENVIRONMENT),
    make_endpoint("gemini", kind=ProviderKind.GEMINI, source=ENVIRONMENT),
    make_endpoint("openrouter", source=ENVIRONMENT),
    make_endpoint("Rack", "qwen3-*", "Llama-3.1-8B", "openai/gpt-oss-20b"),
    make_endpoint("spare", "qwen3-32b", "llama-3.1-8b"),
    make_endpoint("ollama", kind=ProviderKind.OLLAMA, source=ENVIRONMENT),
)
LISTED = {"ollama": ("llama3.2:latest", "qwen2.5:7b"), "openrouter": ("z-ai/glm-5",)}


@pytest.mark.parametrize(
    ("model", "name", "upstream_model"),
    [
        # a provider's name, in any letter case
        ("openrouter/deepseek/deepseek-r1:free", "openrouter", "deepseek/deepseek-r1:free"),
        ("OpenAI/gpt-4o", "openai", "gpt-4o"),
        ("rack/anything", "Rack", "anything"),
        # a provider's name wins over a listing of the whole id
        ("openai/gpt-oss-20b", "openai", "gpt-oss-20b"),
        # an exact id wins over an earlier glob
        ("qwen3-32b", "spare", "qwen3-32b"),
        ("qwen3-8b", "Rack", "qwen3-8b"),
        # the spelling as it was written wins; else the listed one is sent
        ("llama-3.1-8b", "spare", "llama-3.1-8b"),
        ("LLAMA-3.1-8B", "Rack", "Llama-3.1-8B"),
        ("  qwen3-8b ", "Rack", "qwen3-8b"),
        # live lists; Ollama's tag may be left out
        ("qwen2.5:7b", "ollama", "qwen2.5:7b"),
        ("llama3.2", "ollama", "llama3.2:latest"),
        ("z-ai/glm-5", "openrouter", "z-ai/glm-5"),
        # families
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("gemini-2.5-flash", "gemini", "gemini-2.5-flash"),
        ("text-embedding-3-small", "openai", "text-embedding-3-small"),
        # a family that names an id wins over a glob
        ("text-embedding-004", "gemini", "text-embedding-004"),
        # nobody's: the default
        ("command-r", "openrouter", "command-r"),
        ("unknown/model", "openrouter", "unknown/model"),
    ],
)
def test_a_model_goes_to_its_endpoint(model: str, name: str, upstream_model: str) -> None:
    route = choose(model, endpoints=FLEET, default="OpenRouter", listed=LISTED)

    assert route is not None
    assert (route.endpoint.name, route.model) == (name, upstream_model)


@pytest.mark.parametrize("model", ["command-r", "", "  ", "openai/", "/", "elsewhere/gpt-4o"])
def test_a_model_of_nobody_goes_nowhere_without_a_default(model: str) -> None:
    assert choose(model, endpoints=FLEET, listed=LISTED) is None


def test_a_default_that_is_not_enabled_is_none() -> None:
    assert choose("command-r", endpoints=FLEET, default="gone") is None


def test_only_environment_endpoints_without_models_have_a_family() -> None:
    assert family_of(make_endpoint("anthropic", source=ENVIRONMENT)) == ("claude-*",)
    assert family_of(make_endpoint("anthropic")) == ()
    assert family_of(make_endpoint("anthropic", "claude-3-haiku", source=ENVIRONMENT)) == ()


@pytest.mark.parametrize("kind", ProviderKind)
def test_every_kind_of_upstream_is_spoken_and_has_a_client_format_of_its_name(
    kind: ProviderKind,
) -> None:
    assert UPSTREAMS[kind].kind is kind
    assert CLIENTS[kind.value].kind is kind


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(ProviderKind.OPENAI, OpenAIStreamFilter), (ProviderKind.ANTHROPIC, Mirror)],
)
def test_only_openai_streams_have_something_to_hide(kind: ProviderKind, expected: type) -> None:
    request = ChatRequest(model="m", messages=(), stream=True)

    assert isinstance(CLIENTS[kind.value].pass_stream(request=request), expected)


def test_a_mirror_hands_on_what_came() -> None:
    passing = CLIENTS["anthropic"].pass_stream(request=ChatRequest(model="m", messages=()))
    data = b'event: ping\ndata: {"type": "ping"}\n\n'

    assert passing.feed(data) == (data, [])
    assert passing.flush()[0] == b""
