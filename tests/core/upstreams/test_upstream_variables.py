from __future__ import annotations

import pytest

from helmdash.core.upstreams.endpoints import EndpointSource, ProviderKind
from helmdash.core.upstreams.upstream_variables import (
    KNOWN,
    VARIABLES,
    advice_for,
    endpoints_of,
    host_of,
    key_variable_of,
    key_variable_problem,
    ollama_url,
)
from tests.support import ROOT


def test_nothing_is_named_where_no_variable_is_set() -> None:
    assert endpoints_of({"PATH": "/bin", "OPENAI_API_KEY": " "}, allow_private=False) == ()


@pytest.mark.parametrize(
    ("variables", "name", "kind", "base_url", "key"),
    [
        ({"OPENAI_API_KEY": "k"}, "openai", "openai", "https://api.openai.com/v1", "k"),
        # a host alone gets the path that all of them have
        (
            {"OPENAI_API_KEY": " k ", "OPENAI_BASE_URL": "https://llm.test/"},
            "openai",
            "openai",
            "https://llm.test/v1",
            "k",
        ),
        # a path of its own stays
        (
            {"OPENAI_BASE_URL": "https://llm.test/api/v3"},
            "openai",
            "openai",
            "https://llm.test/api/v3",
            None,
        ),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic", "anthropic", "https://api.anthropic.com", "k"),
        ({"OPENROUTER_API_KEY": "k"}, "openrouter", "openai", "https://openrouter.ai/api/v1", "k"),
        (
            {"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "other"},
            "gemini",
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            "k",
        ),
        (
            {"GOOGLE_API_KEY": "k", "GEMINI_BASE_URL": "https://g.test"},
            "gemini",
            "gemini",
            "https://g.test",
            "k",
        ),
        ({"DEEPSEEK_API_KEY": "k"}, "deepseek", "openai", "https://api.deepseek.com/v1", "k"),
        ({"GROQ_API_KEY": "k"}, "groq", "openai", "https://api.groq.com/openai/v1", "k"),
        ({"MISTRAL_API_KEY": "k"}, "mistral", "openai", "https://api.mistral.ai/v1", "k"),
        (
            {"OLLAMA_HOST": "box:1234", "OLLAMA_API_KEY": "k"},
            "ollama",
            "ollama",
            "http://box:1234",
            "k",
        ),
    ],
)
def test_each_provider_is_found_by_the_variables_of_its_sdk(
    variables: dict[str, str], name: str, kind: str, base_url: str, key: str | None
) -> None:
    (found,) = endpoints_of(variables, allow_private=False)

    assert (found.name, found.kind, found.base_url, found.api_key) == (name, kind, base_url, key)
    assert (found.source, found.allow_private) == (EndpointSource.ENVIRONMENT, False)
    assert set(variables) <= set(VARIABLES)
    assert bool(key_variable_of(found, variables)) == (key is not None)
    assert key_variable_of(found, variables) in {"", *variables}


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:80", "http://box:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
        ('"box"', "http://box:11434"),
    ],
)
def test_the_host_of_ollama_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert ollama_url(host) == url


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:9", True),
        ("127.9.8.7:9", True),
        ("localhost:9", True),
        ("LocalHost.:9", True),
        ("llm.localhost:9", True),
        ("[::1]:9", True),
        ("[0:0:0:0:0:0:0:1]:9", True),
        ("[::ffff:127.0.0.1]:9", True),
        ("[::ffff:7f00:1]:9", True),
        ("[::ffff:10.0.0.1]:9", False),
        ("[::127.0.0.1]:9", False),  # only mapped ones mean the IPv4 address
        ("192.168.1.9:9", False),
        ("10.0.0.1:9", False),
        ("127.0.0.1.example.org:9", False),
        ("notlocalhost:9", False),
        ("2130706433:9", False),  # 127.0.0.1 in a spelling that only some programs know
    ],
)
def test_every_variable_may_name_this_machine_and_no_private_network(
    host: str, allowed: bool
) -> None:
    variables = [name for known in KNOWN for name in known.url_variables]
    for name in variables:
        (found,) = endpoints_of({name: f"http://{host}/v1"}, allow_private=False)
        assert found.allow_private is allowed, name
    (found,) = endpoints_of({"OLLAMA_HOST": host}, allow_private=False)
    assert found.allow_private is allowed


def test_a_server_that_listens_everywhere_is_on_this_machine() -> None:
    (found,) = endpoints_of({"OLLAMA_HOST": "0.0.0.0"}, allow_private=False)

    assert found.allow_private
    assert found.kind is ProviderKind.OLLAMA


def test_one_setting_allows_private_addresses_for_all_of_them() -> None:
    found = endpoints_of(
        {"OPENAI_BASE_URL": "http://10.0.0.1", "OLLAMA_HOST": "10.0.0.2"}, allow_private=True
    )

    assert [endpoint.allow_private for endpoint in found] == [True, True]


def test_variables_that_point_clients_here_do_not_make_the_server_call_itself() -> None:
    here = {"127.0.0.1:8000", "helm.example.org:443"}

    found = endpoints_of(
        {
            "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1",
            "DEEPSEEK_BASE_URL": "http://[::FFFF:7f00:1]:8000",
            "ANTHROPIC_BASE_URL": "https://Helm.example.org",
            "OLLAMA_HOST": "0.0.0.0:8000",
            "GROQ_API_KEY": "k",
        },
        allow_private=True,
        own_hosts=here,
    )

    assert [endpoint.name for endpoint in found] == ["groq"]


def test_a_host_is_told_with_its_port() -> None:
    assert host_of("https://A.example/v1") == "a.example:443"
    assert host_of("nonsense") == ""


@pytest.mark.parametrize(
    "variable",
    ["OPENAI_API_KEY", "HF_TOKEN", "TOGETHER_API_KEY", "ACME_SECRET", "ANTHROPIC_AUTH_TOKEN"],
)
def test_variables_that_hold_keys_of_providers_may_be_named(variable: str) -> None:
    assert key_variable_problem(variable) is None


@pytest.mark.parametrize(
    "variable",
    [
        "",
        "PATH",
        "DATABASE_URL",
        "DATABASE_KEY",
        "OPENAI_BASE_URL",
        "openai_api_key",
        "SECRET_KEY",
        "HELMDASH_SECRET_KEY",
        "HELMDASH_BOOTSTRAP_API_KEY",
        "HELMDASH_ADMIN_TOKEN",
        "DJANGO_SUPERUSER_TOKEN",
        "PASSWORD_TOKEN",
        "DB_PASSWORD_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "APP_PRIVATE_KEY",
        "SESSION_KEY",
        "OPENAI_API_KEY\n",
    ],
)
def test_variables_that_hold_anything_else_may_not(variable: str) -> None:
    assert key_variable_problem(variable)


@pytest.mark.parametrize(
    ("model", "names", "said"),
    [
        ("openai/gpt-4o-mini", [], "no upstream openai: set OPENAI_API_KEY"),
        (
            "OpenRouter/openrouter/free",
            ["openai"],
            "no upstream openrouter: set OPENROUTER_API_KEY",
        ),
        ("ollama/qwen3:8b", ["openai"], "no upstream ollama: set OLLAMA_HOST"),
        ("gpt-4o-mini", [], "no upstream: set a provider's key, such as OPENAI_API_KEY,"),
        ("acme/tiny", [], "no upstream: set a provider's key, such as OPENAI_API_KEY,"),
        ("openai/gpt-9", ["openai"], ""),
        ("acme/tiny", ["openai"], ""),
        ("openai", ["anthropic"], ""),
    ],
)
def test_who_names_a_provider_without_a_key_is_told_its_variable(
    model: str, names: list[str], said: str
) -> None:
    advice = advice_for(model, names)

    assert said in advice
    assert bool(said) == bool(advice)


def test_the_settings_page_of_the_docs_lists_every_variable_and_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

    for name in VARIABLES:
        assert f"`{name}`" in text
    for known in KNOWN:
        assert known.base_url in text
