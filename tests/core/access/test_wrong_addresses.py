"""Which format a lost client reads, and which address it is told."""

from __future__ import annotations

import pytest

from helmdash.core.access.wrong_addresses import Dialect, advice, dialect_of, printable

BASE = "http://h:1"


@pytest.mark.parametrize(
    ("path", "headers", "dialect", "said"),
    [
        ("/chat/completions", {}, "openai", "/v1/chat/completions: use base_url http://h:1/v1"),
        ("/v1/v1/chat/completions/", {}, "openai", "use base_url http://h:1/v1"),
        ("/openai/v1/embeddings", {}, "openai", "/v1/embeddings: use"),
        ("/api/v1/chat/completions", {}, "openai", "use base_url http://h:1/v1"),
        ("/openai/deployments/x/chat/completions", {}, "openai", "/v1/chat/completions"),
        ("/api/chat/completions", {}, "openai", "use base_url http://h:1/v1"),
        ("/v1/audio/speech", {}, "openai", "serves /v1/chat/completions"),
        ("/models", {}, "openai", "/v1/models"),
        ("/responses", {}, "openai", "/v1/responses: use base_url http://h:1/v1"),
        ("/v1/v1/responses/compact", {}, "openai", "/v1/responses/compact: use base_url"),
        ("/v1beta/openai/chat/completions", {}, "openai", "/v1/chat/completions: use base_url"),
        ("/v1", {}, "openai", "use base_url http://h:1/v1"),
        ("/messages", {}, "anthropic", "/v1/messages: use base_url http://h:1."),
        ("/v1/v1/messages/count_tokens", {}, "anthropic", "/v1/messages/count_tokens: use"),
        ("/anthropic/v1/models", {}, "anthropic", "/v1/models: use base_url http://h:1."),
        ("/models", {b"anthropic-version": b"2023-06-01"}, "anthropic", "/v1/models"),
        ("/models/gemini-2.5-pro:generateContent", {}, "gemini", "use base_url http://h:1."),
        ("/v1alpha/models", {}, "gemini", "/v1beta/models: use"),
        ("/models", {b"x-goog-api-key": b"k"}, "gemini", "/v1beta/models"),
        ("/api/api/chat", {}, "ollama", "/api/chat: use host http://h:1."),
        ("/v1/api/tags", {}, "ollama", "/api/tags: use host"),
        ("/api/embeddings", {}, "ollama", "use host"),
        ("/api/v1/call", {}, "problem", "/api/v1/docs"),
        ("/nothing", {}, "problem", "use base_url http://h:1/v1"),
        ("/nothing", {b"user-agent": b"OpenAI/Python 1.2"}, "openai", "http://h:1/v1"),
    ],
)
def test_a_lost_client_is_told_the_right_address_in_its_format(
    path: str, headers: dict[bytes, bytes], dialect: str, said: str
) -> None:
    found = dialect_of(path, headers)

    assert found is Dialect(dialect)
    assert said in advice(found, path, BASE)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a\x1b[31m\u202eb", "/a?[31m?b"),
        ("/x/hd_live_0123456789abcdef0123456789", "/x/…"),
        ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource"),
        ("/x/aBcdefghijklmnopqrstuvwx", "/x/…"),
        ("/bot/sk-abc123def456/x", "/bot/…/x"),
        ("/a?key=secret", "/a"),
        ("/" + "ab/" * 100, ("/" + "ab/" * 100)[:119] + "…"),
    ],
)
def test_a_path_is_shown_without_secrets_and_tricks(path: str, shown: str) -> None:
    assert printable(path) == shown
