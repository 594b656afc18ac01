from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.upstream.listing import probe
from helmdash.upstream.listings import Listings
from tests.upstream.servers import KEY, Exchange, calling, endpoint, run, serving


@pytest.mark.parametrize(
    ("kind", "path", "header", "body", "models"),
    [
        (
            ProviderKind.OPENAI,
            "/v1/models",
            f"authorization: Bearer {KEY}",
            b'{"data":[{"id":"a"},{"id":"b"}]}',
            ("a", "b"),
        ),
        (
            ProviderKind.ANTHROPIC,
            "/v1/models?",
            f"x-api-key: {KEY}",
            b'{"data":[{"id":"claude-x"}]}',
            ("claude-x",),
        ),
        (
            ProviderKind.GEMINI,
            "/v1/models?",
            f"x-goog-api-key: {KEY}",
            b'{"models":[{"name":"models/gemini-x"}]}',
            ("gemini-x",),
        ),
        (
            ProviderKind.OLLAMA,
            "/v1/api/tags",
            f"authorization: Bearer {KEY}",
            b'{"models":[{"name":"qwen3:8b","model":"qwen3:8b"}]}',
            ("qwen3:8b",),
        ),
    ],
)
def test_each_kind_of_upstream_is_asked_in_its_own_words(
    kind: ProviderKind, path: str, header: str, body: bytes, models: tuple[str, ...]
) -> None:
    async def tell(exchange: Exchange) -> None:
        exchange.say("200 OK", body)

    async def scene() -> None:
        async with serving(tell) as server, calling() as client:
            result = await probe(client, endpoint(server.port, kind=kind))

            assert (result.ok, result.models) == (True, models)
            assert f"lists {len(models)} model" in result.message
            assert server.heads[0].startswith(f"GET {path}")
            assert header.lower() in server.heads[0].lower()

    run(scene())


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        # a wrong key, quoted back
        ("401 No", f'{{"error":{{"message":"bad key {KEY}"}}}}', "HTTP 401"),
        # no such list here
        ("404 Not Found", "<html>nothing</html>", "HTTP 404"),
        # a page for people
        ("200 OK", "<html>Welcome</html>", "Check its base URL"),
        # an answer of another shape
        ("200 OK", '{"data":{}}', "Check its base URL"),
        # deep nonsense
        pytest.param("200 OK", "[" * 100_000, "Check its base URL", id="nested without end"),
    ],
)
def test_a_test_that_fails_says_why_without_the_key(status: str, body: str, words: str) -> None:
    async def tell(exchange: Exchange) -> None:
        exchange.say(status, body.encode())

    async def scene() -> None:
        async with serving(tell) as server, calling() as client:
            result = await probe(client, endpoint(server.port))

            assert (result.ok, result.models) == (False, ())
            assert words in result.message
            assert KEY not in result.message
            assert len(result.message) < 500

    run(scene())


def test_an_upstream_that_may_not_be_called_says_what_to_tick() -> None:
    async def scene() -> None:
        async with calling() as client:
            result = await probe(client, endpoint(80, allow_private=False))

            assert not result.ok
            assert "only where private addresses are allowed" in result.message

    run(scene())


@pytest.mark.parametrize(
    "other", [{"api_key": "sk-of-another-project"}, {"api_key": None}, {"allow_private": False}]
)
def test_what_one_key_was_told_is_no_other_rows_of_the_same_name(other: dict[str, Any]) -> None:
    """A vendor lists what it has made for an account, and projects may have rows of the same name
    and address."""

    async def tell(exchange: Exchange) -> None:
        if KEY in exchange.head:
            exchange.say("200 OK", b'{"data":[{"id":"ft:of-one","max_model_len":8192}]}')
        else:
            exchange.say("401 Unauthorized")

    async def scene() -> None:
        async with serving(tell) as server, calling() as client:
            listings = Listings(client)
            one, another = endpoint(server.port), endpoint(server.port, **other)

            assert await listings.all_ids([one]) == ["mine/ft:of-one"]
            assert await listings.all_ids([another]) == []
            assert await listings.all_ids([one]) == ["mine/ft:of-one"]
            assert listings.window(another, "ft:of-one") is None
            assert listings.window(one, "ft:of-one") == 8192
            await listings.aclose()

    run(scene())
