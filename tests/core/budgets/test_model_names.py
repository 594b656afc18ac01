"""One model has one key, however a client spells it and whoever tells its provider."""

from __future__ import annotations

import pytest

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.model_names import (
    KEY_CHARS,
    beta_window,
    model_key,
    spellings_of,
    split_window,
)
from helmdash.core.budgets.shipped import load_shipped
from tests.support import ROOT

TABLE = BudgetTable(*load_shipped((ROOT / "fixtures" / "budgets.toml").read_text()))

# Every spelling, with who is known to have answered, and the key they share.
SAME: dict[str, list[tuple[str, str | None]]] = {
    "openai/gpt-4o": [
        ("gpt-4o", None), (" GPT-4o ", None), ("openai/gpt-4o", None), ("OpenAI/GPT-4O", None),
        ("gpt-4o", "openai"), ("openai/gpt-4o", "openai"), ("gpt-4o", "OpenAI"),
        ("azure/gpt-4o", None), ("gpt-4o[1m]", "openai"),
    ],
    "anthropic/claude-sonnet-4-5": [
        ("claude-sonnet-4-5", None), ("claude-sonnet-4-5[1m]", "anthropic"),
        ("anthropic/claude-sonnet-4-5[1M]", None), ("anthropic.claude-sonnet-4-5", "bedrock"),
        ("eu.anthropic.claude-sonnet-4-5", None), ("vertex_ai/claude-sonnet-4-5", None),
    ],
    "google/gemini-2.5-pro": [
        ("gemini-2.5-pro", "gemini"), ("models/gemini-2.5-pro", "gemini"),
        ("gemini/gemini-2.5-pro", None), ("google/gemini-2.5-pro", "gemini"),
        ("gemini-2.5-pro", None), ("gemini/models/gemini-2.5-pro", None),
    ],
    "deepseek/deepseek-chat": [
        ("deepseek-chat", None), ("deepseek-chat", "deepseek"), ("deepseek/deepseek-chat", None),
    ],
    "ollama/llama3": [
        ("llama3", "ollama"), ("llama3:latest", "ollama"), ("ollama/Llama3", None),
        ("ollama_chat/llama3:latest", None),
    ],
    # the same words from somebody else are another model
    "openrouter/openai/gpt-4o": [
        ("openrouter/openai/gpt-4o", None), ("openai/gpt-4o", "openrouter"),
    ],
    "house/gpt-4o": [("gpt-4o", "house"), ("house/gpt-4o", None), ("House/GPT-4o", "house")],
    "gpt-proxy/llama": [("gpt-proxy/llama", None), ("llama", "gpt-proxy")],
    "ollama/gpt-oss:20b": [("gpt-oss:20b", "ollama")],
    "ollama/llama3:8b": [("llama3:8b", "ollama")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "model", "provider"),
    [(key, *spelt) for key, spellings in SAME.items() for spelt in spellings],
)
def test_every_spelling_has_the_same_key(key: str, model: str, provider: str | None) -> None:
    assert TABLE.key_of(model, provider=provider) == key
    assert TABLE.key_of(key) == key  # a key is a spelling of itself
    assert TABLE.key_of(model, provider=provider) == key  # from memory


def test_aliases_in_a_circle_lead_somewhere() -> None:
    spellings = spellings_of([("a/", "b/"), ("b/", "a/"), ("", "x"), ("c", "c")])

    assert model_key("a/m", provider=None, spellings=spellings) in ("a/m", "b/m")


def test_a_key_fits_its_column() -> None:
    assert len(model_key("m" * 255, provider="p" * 64, spellings=())) == KEY_CHARS


@pytest.mark.parametrize(
    ("model", "bare", "window"),
    [
        ("claude-opus-4-8[1m]", "claude-opus-4-8", 1_000_000),
        ("x [200K]", "x", 200_000),
        ("x[0m]", "x", None),
        ("[1m]", "[1m]", None),
        ("x[1m]y", "x[1m]y", None),
        ("x[big]", "x[big]", None),
        ("x", "x", None),
        ("", "", None),
    ],
)
def test_a_suffix_names_a_window(model: str, bare: str, window: int | None) -> None:
    assert split_window(model) == (bare, window)


@pytest.mark.parametrize(
    ("betas", "window"),
    [
        (b"context-1m-2025-08-07", 1_000_000),
        (b"oauth-2025-04-20, context-1m-2025-08-07,fine-grained", 1_000_000),
        (b"context-500k-2027-01-01", 500_000),
        (b"context-management-2025-06-27", None),
        (b"no-context-1m-2025", None),
        (b"context-\xff", None),
        (b"", None),
    ],
)
def test_a_beta_header_names_a_window(betas: bytes, window: int | None) -> None:
    assert beta_window(betas) == window
