"""What servers say of their windows: in listings, llama.cpp's /props, Ollama's show and ps."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.ollama.shown import read_running
from helmdash.providers.shared.listed_windows import read_windows
from helmdash.upstream.listings import Listings
from helmdash.upstream.ollama.windows import ServerWindow, Windows
from tests.support.upstreams.ollama_shim import MODEL, Ollama, run_shim
from tests.upstream.servers import Exchange, calling, endpoint, run, serving


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ({"id": "m", "max_model_len": 4096}, 4096),  # vLLM
        ({"id": "m", "meta": {"n_ctx": 2048, "n_ctx_train": 131_072}}, 2048),  # llama.cpp
        ({"id": "m", "meta": {"n_ctx_train": 8192}}, 8192),  # an older one
        ({"id": "m", "context_length": 131_072}, 131_072),  # Together
        (
            {"id": "m", "context_length": 200_000, "top_provider": {"context_length": 64_000}},
            64_000,
        ),  # OpenRouter: where it routes to
        ({"id": "m", "context_length": 9, "top_provider": {"context_length": None}}, 9),
        ({"id": "m", "context_window": 32_768}, 32_768),  # Groq
        ({"id": "m", "max_context_length": 32_000}, 32_000),  # Mistral
        ({"id": "m", "max_context_length": 131_072, "loaded_context_length": 4096}, 4096),
        ({"id": "m", "max_input_tokens": 1_000_000, "max_tokens": 64_000}, 1_000_000),  # Anthropic
        ({"name": "models/m", "inputTokenLimit": 1_048_576}, 1_048_576),  # Gemini
        ({"id": "m"}, None),
        ({"id": "m", "context_length": True}, None),
        ({"id": "m", "context_length": "8192"}, None),
        ({"id": "m", "context_length": 0}, None),
        ({"id": "m", "meta": [1], "top_provider": "x"}, None),
        ({"context_length": 5}, None),
    ],
)
@pytest.mark.parametrize("name", ["data", "models"])
def test_each_listing_tells_its_windows_in_its_own_words(
    entry: dict[str, Any], tokens: int | None, name: str
) -> None:
    found = read_windows(json.dumps({name: [entry, 3, None]}).encode())

    assert found.get("m") == tokens


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data":{}}', b'{"data":[1]}', b"\xff"])
def test_what_is_no_listing_tells_nothing(body: bytes) -> None:
    assert read_windows(body) == {}
    assert read_running(body, "m") is None


@pytest.mark.parametrize(
    ("props", "tokens"),
    [
        ({"default_generation_settings": {"n_ctx": 4096}}, 4096),
        ({"n_ctx": 2048}, 2048),
        (None, 131_072),  # it has none: what the model was trained for
    ],
)
def test_llama_cpp_is_asked_how_it_was_started(props: dict[str, Any] | None, tokens: int) -> None:
    listed = {"data": [{"id": "Tiny", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}]}

    async def answer(exchange: Exchange) -> None:
        if exchange.head.startswith("GET /props"):
            body = json.dumps(props).encode()
            exchange.say("200 OK" if props else "404 Not Found", body)
        else:
            exchange.say("200 OK", json.dumps(listed).encode())

    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            listings = Listings(client)
            here = endpoint(server.port, kind=ProviderKind.OPENAI)
            assert listings.window(here, "tiny") is None
            listings.learn(here)
            await listings.all_ids([here])
            assert listings.window(here, "tiny") == tokens
            listings.learn(here)  # fresh: nobody is asked
            await listings.aclose()
            assert [head.split()[1] for head in server.heads] == ["/v1/models", "/props"]

    run(scene())


@pytest.mark.parametrize(
    ("first", "asked_again_after_s"), [("503 Service Unavailable", 300), ("200 OK", 3600)]
)
def test_only_a_list_without_windows_is_left_alone_for_an_hour(
    first: str, asked_again_after_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that could not list, since it still loaded its model, has not said that it tells
    none."""
    clock = [1000.0]
    monkeypatch.setattr("helmdash.upstream.listings.monotonic", lambda: clock[0])
    entry: dict[str, Any] = {"id": "m"}
    status = [first]

    async def answer(exchange: Exchange) -> None:
        exchange.say(status[0], json.dumps({"data": [entry]}).encode())

    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            listings = Listings(client)
            here = endpoint(server.port, kind=ProviderKind.OPENAI)
            await listings.all_ids([here])
            asked = len(server.heads)
            status[0], entry["max_model_len"] = "200 OK", 8192
            clock[0] += asked_again_after_s - 1
            listings.learn(here)
            await asyncio.sleep(0.1)
            assert len(server.heads) == asked
            clock[0] += 2
            listings.learn(here)
            async with asyncio.timeout(10):
                while listings.window(here, "m") is None:
                    await asyncio.sleep(0.01)
            assert listings.window(here, "m") == 8192
            await listings.aclose()

    run(scene())


LOADED = [
    # trained, Modelfile, loaded by itself: the window
    (8192, None, None, 8192),
    (131_072, 16_384, None, 16_384),
    (131_072, None, 32_768, 32_768),  # OLLAMA_CONTEXT_LENGTH
    (131_072, 16_384, 4096, 4096),
    (8192, None, 32_768, 8192),  # never more than the model has
    (None, None, 4096, 4096),
    (None, None, None, None),
]


@pytest.mark.parametrize(("trained", "configured", "loaded", "window"), LOADED)
def test_ollamas_own_setting_comes_first_and_never_exceeds_the_model(
    trained: int | None, configured: int | None, loaded: int | None, window: int | None
) -> None:
    with run_shim() as ollama:
        ollama.ways.trained, ollama.ways.configured = trained, configured
        ollama.ways.loaded = loaded

        async def scene() -> None:
            async with calling() as client:
                windows = Windows(client)
                at = _at(ollama)
                assert await windows.of_model(at, MODEL, waits=False) == ServerWindow()
                found = await windows.of_model(at, MODEL, waits=True)
                assert found == ServerWindow(window, trained)

        run(scene())


def test_a_window_that_was_sent_by_us_is_no_news() -> None:
    """/api/ps tells what the model is loaded with, and that is what the last request named."""
    with run_shim() as ollama:
        ollama.ways.trained, ollama.ways.loaded = 131_072, 4096

        async def scene() -> None:
            async with calling() as client:
                windows = Windows(client)
                windows.sent(_at(ollama), MODEL, 4096)
                assert (await windows.of_model(_at(ollama), MODEL, waits=True)).tokens == 131_072
                again = Windows(client)
                assert (await again.of_model(_at(ollama), MODEL, waits=True)).tokens == 4096
                again.sent(_at(ollama), MODEL, 4096)
                again.expire()
                again.learn(_at(ollama), MODEL)
                await again.settled()
                found = await again.of_model(_at(ollama), MODEL, waits=False)
                assert found.tokens == 4096  # it was the server's own

        run(scene())


def test_a_server_that_is_slow_holds_nobody_up_for_long() -> None:
    with run_shim() as ollama:
        ollama.ways.hangs = {"/api/show"}

        async def scene() -> None:
            async with calling() as client:
                windows = Windows(client, first_patience_s=0.05)
                assert await windows.of_model(_at(ollama), MODEL, waits=True) == ServerWindow()
                windows.close()

        run(scene())


def _at(ollama: Ollama) -> Endpoint:
    return Endpoint(
        name="ollama", kind=ProviderKind.OLLAMA, base_url=ollama.url, allow_private=True
    )
