"""The program behind a call, by the name it gives itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.conversations.clients import (
    NAME_CHARS,
    VERSION_CHARS,
    client_by_prompt,
    client_of,
)

KNOWN = [
    ("claude-cli/2.1.197 (external, cli)", "claude-code", "2.1.197"),
    ("claude-cli/2.1.197 (external, sdk-py)", "claude-code", "2.1.197"),
    ("codex_cli_rs/0.169.0 (Ubuntu 22.4.0; x86_64) WindowsTerminal", "codex", "0.169.0"),
    ("codex_exec/0.169.0 (Debian 12)", "codex", "0.169.0"),
    ("GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64)", "gemini-cli", "0.61.0"),
    ("opencode/1.2.3 ai-sdk/provider-utils/3.0 runtime/bun/1.2", "opencode", "1.2.3"),
    ("ai/5.0.1 ai-sdk/openai/2.0 runtime/node.js/22", "ai-sdk", "5.0.1"),
    ("OpenAI/Python 1.50.0", "openai-python", "1.50.0"),
    ("AsyncOpenAI/Python 3.3.1", "openai-python", "3.3.1"),
    ("OpenAI/JS 6.1.0", "openai-node", "6.1.0"),
    ("AsyncAnthropic/Python 0.40.0", "anthropic-python", "0.40.0"),
    ("Anthropic/JS 0.60", "anthropic-node", "0.60"),
    ("ollama-python/0.4.1 (x86_64 linux) Python/3.11.7", "ollama-python", "0.4.1"),
    ("ollama/0.13.1 (amd64 linux) Go/go1.24", "ollama", "0.13.1"),
    ("google-genai-sdk/1.2.0 gl-python/3.11", "google-genai", "1.2.0"),
    ("langchainjs-openai/1.0.0 ((node/v20))", "langchain", "1.0.0"),
    ("litellm/1.50.2", "litellm", "1.50.2"),
    ("Python/3.12 aiohttp/3.9.1", "aiohttp", "3.9.1"),
    ("python-httpx/0.27.0", "httpx", "0.27.0"),
    ("curl/8.5.0", "curl", "8.5.0"),
    # an unknown one is known by its first word
    ("AcmeBot/1.2 (+https://acme.test)", "acmebot", "1.2"),
    ("weird", "weird", ""),
    # words within other words are none
    ("mailtool/1.0 ai/2", "mailtool", "1.0"),
    ("curly/3", "curly", "3"),
]


VIBE = "You help users get complex tasks done. \nYou are Mistral Vibe, a CLI coding agent"


@pytest.mark.parametrize(("agent", "name", "version"), KNOWN)
def test_each_program_has_a_name_and_a_version(agent: str, name: str, version: str) -> None:
    found = client_of(agent)

    assert found is not None
    assert (found.name, found.version) == (name, version)


@pytest.mark.parametrize("agent", ["", " ", "\x1b[31m", "\u202eevil", "(comment)", "123"])
def test_what_names_nobody_is_nobody(agent: str) -> None:
    assert client_of(agent) is None


@given(st.text(max_size=2000))
def test_whatever_comes_the_name_is_short_and_plain(agent: str) -> None:
    found = client_of(agent)

    if found is not None:
        assert 1 <= len(found.name) <= NAME_CHARS
        assert len(found.version) <= VERSION_CHARS
        assert (found.name + found.version).isascii()
        assert (found.name + found.version).isprintable()


@pytest.mark.parametrize(
    ("agent", "prompt", "name"),
    [
        ("OpenAI/JS 5.20.1", "You are the GitHub Copilot CLI, a terminal assistant", "copilot"),
        ("", "You are the GitHub Copilot CLI, a terminal assistant", "copilot"),
        ("python-httpx/0.28.1", VIBE, "mistral-vibe"),
        # The same beginning of somebody else's, and the name where it is no longer early.
        ("python-httpx/0.28.1", "You help users get complex tasks done. Be kind.", "httpx"),
        ("python-httpx/0.28.1", VIBE.replace("\n", "x" * 9_000), "httpx"),
        # What a prompt says of others, and of them further down.
        ("OpenAI/JS 5.20.1", "Compare yourself with this: You are Cline, an agent", "openai-node"),
        ("OpenAI/JS 5.20.1", "You are Clineport, a shop's assistant", "openai-node"),
        ("OpenAI/JS 5.20.1", "", "openai-node"),
        # An agent that names itself knows best.
        ("opencode/1.18.33", "You are Cline, an agent", "opencode"),
    ],
)
def test_an_agent_is_known_by_its_own_prompt_where_its_user_agent_is_a_librarys(
    agent: str, prompt: str, name: str
) -> None:
    found = client_by_prompt(client_of(agent), prompt)

    assert found is not None
    assert found.name == name


def test_a_librarys_version_is_not_the_agents() -> None:
    found = client_by_prompt(client_of("OpenAI/JS 5.20.1"), "You are Cline, an agent")

    assert found is not None
    assert found.version == ""
