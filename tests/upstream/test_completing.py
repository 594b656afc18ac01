"""Completions of our own, asked of the simulated vendors in all four formats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.completion import Completion, UnknownModel
from helmdash.core.upstreams.endpoints import Endpoint, EndpointSource, ProviderKind
from helmdash.upstream.completing import completer
from helmdash.upstream.listings import Listings
from helmdash.upstream.sharing import Shared
from tests.builders import make_spec
from tests.support.upstreams import Fleet, run_fleet
from tests.support.upstreams.fleet import KEYS, PREFIXES
from tests.support.upstreams.plays import THOUGHTS, WHOLE
from tests.upstream.servers import calling, run

PROVIDERS = tuple(PREFIXES)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SYSTEM, USER = "Answer as JSON. Ünïcode.", "What next?"
LENGTH_WORDS = {"length", "max_tokens", "MAX_TOKENS"}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with run_fleet() as fleet:
        yield fleet


def endpoints_of(fleet: Fleet, *names: str) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=name,
            kind=ProviderKind(name),
            base_url=fleet[name].root_url + ("/v1" if name == "openai" else ""),
            api_key=KEYS[name],
            allow_private=True,
            source=EndpointSource.ENVIRONMENT,
            read_timeout_s=5.0,
        )
        for name in names or PROVIDERS
    )


def asking(provider: str, behaviour: str, **over: Any) -> Completion:
    """A completion whose model is this test's own: its mark tells its requests apart."""
    model = f"{provider}/{PREFIXES[provider]}-{behaviour}.{uuid4().hex[:8]}"
    told = {"call_id": uuid4().hex, "model": model, "system": SYSTEM, "user": USER}
    return Completion(**{**told, "max_tokens": 500, **over})


def complete(
    fleet: Fleet, completion: Completion, *, default: str = "", rules: BudgetTable | None = None
) -> Capture:
    async def scene() -> Capture:
        async with completer(
            endpoints_of(fleet), default=default, clock=lambda: NOW, rules=rules
        ) as ask:
            return await ask(completion)

    return run(scene())


def sent_to(fleet: Fleet, completion: Completion) -> Any:
    """The body of the only request that its provider got for it."""
    provider, _, model = completion.model.partition("/")
    (seen,) = fleet[provider].seen(model.rpartition(".")[2])
    return seen.json


@pytest.mark.parametrize(
    ("provider", "key", "window"),
    [("ollama", "ollama/", 1_100), ("ollama", "other/", None), ("openai", "openai/", None)],
)
def test_an_ollama_server_is_told_the_window_of_the_budget(
    fleet: Fleet, provider: str, key: str, window: int | None
) -> None:
    completion = asking(provider, "plain")
    row = make_spec(key, input_tokens=1_000, output_tokens=100)

    found = complete(fleet, completion, rules=BudgetTable([row, make_spec()]))

    assert found.window == window
    assert sent_to(fleet, completion).get("options", {}).get("num_ctx") == window


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_is_told_in_full(fleet: Fleet, provider: str) -> None:
    completion = asking(provider, "plain")

    found = complete(fleet, completion)

    assert (found.id, found.model, found.provider) == (
        completion.call_id,
        completion.model,
        provider,
    )
    # vendors answer with the version of the model that they chose
    assert (found.upstream_model or "").startswith(completion.model.partition("/")[2])
    assert (found.content, found.raw_content_len) == (WHOLE, len(WHOLE.encode()))
    assert (found.status, found.http_status, found.error_code) == ("success", 200, None)
    assert (found.started_at, found.ttft_ms) == (NOW, None)
    assert found.latency_ms is not None
    assert found.latency_ms >= 0
    assert (found.attempt, found.attempts, found.tool_calls) == (1, (), 0)
    assert found.usage
    assert found.finish_reason in ("stop", "end_turn", "STOP")
    assert found.messages == (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": USER},
    )
    body = json.dumps(sent_to(fleet, completion), ensure_ascii=False)
    assert SYSTEM in body
    assert USER in body
    assert "temperature" not in body
    assert found.sent is not None
    assert found.sent.messages == 2
    assert found.sent.bytes is not None
    assert found.sent.bytes >= len((SYSTEM + USER).encode())


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        # cut at the limit: what came is told, and the reason in the vendor's word
        ("cut-short", {"status": "success", "content": WHOLE, "http_status": 200}),
        # 429 that asks for a longer wait than a caller has: not waited for
        ("busy", {"status": "error", "http_status": 429, "content": None, "attempts": ()}),
        # the key is refused
        ("bad-key", {"status": "error", "content": None, "raw_content_len": None}),
        # 200 with nothing in it: no error, a reply of no bytes
        ("nothing", {"status": "success", "http_status": 200, "content": "", "error_code": None}),
        # an error where the reply should be
        ("error-in-200", {"status": "error", "http_status": 200, "raw_content_len": 0}),
        # half a reply, then the connection is gone
        ("cut-midway", {"status": "error", "error_code": "connection_closed", "content": None}),
        # bytes that are no reply
        ("garbled", {"status": "error", "error_code": "undecodable_reply", "http_status": 200}),
    ],
)
def test_what_goes_wrong_is_told_and_not_raised(
    fleet: Fleet, provider: str, behaviour: str, expected: dict[str, Any]
) -> None:
    found = complete(fleet, asking(provider, behaviour))

    assert {name: getattr(found, name) for name in expected} == expected
    assert (found.error_message is None) == (expected["status"] == "success")
    if behaviour == "cut-short":
        assert found.finish_reason in LENGTH_WORDS
    if behaviour == "bad-key":
        # Gemini answers 400 where others answer 401.
        assert found.http_status == (400 if provider == "gemini" else 401)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_refusal_has_its_own_finish_reason(fleet: Fleet, provider: str) -> None:
    found = complete(fleet, asking(provider, "refusal"))

    assert (found.finish_reason, found.status) == ("refusal", "success")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_reasoning_is_counted_apart_from_the_content(fleet: Fleet, provider: str) -> None:
    found = complete(fleet, asking(provider, "reasoning"))

    assert found.content == WHOLE
    assert found.reasoning_len == len("".join(THOUGHTS).encode())


def test_a_server_that_keeps_failing_is_told_with_every_attempt(fleet: Fleet) -> None:
    found = complete(fleet, asking("openai", "fail"))

    assert (found.status, found.http_status, found.attempt) == ("error", 500, 3)
    assert [each["status"] for each in found.attempts] == [500, 500, 500]


def test_a_connection_that_is_cut_at_once_is_told(fleet: Fleet) -> None:
    found = complete(fleet, asking("anthropic", "cut-at-once"))

    assert (found.error_code, found.http_status) == ("connection_closed", None)


def test_an_upstream_that_cannot_be_reached_is_told(fleet: Fleet) -> None:
    async def scene() -> Capture:
        (there,) = endpoints_of(fleet, "openai")
        gone = replace(there, base_url="http://127.0.0.1:9/v1")
        async with completer([gone], default="", clock=lambda: NOW) as ask:
            return await ask(asking("openai", "plain"))

    found = run(scene())

    assert (found.status, found.error_code) == ("error", "connection_error")
    assert found.http_status is None


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("behaviour", ["echo", "echo-error", "bad-key"])
def test_the_key_of_the_provider_is_in_no_text(fleet: Fleet, provider: str, behaviour: str) -> None:
    found = complete(fleet, asking(provider, behaviour))

    assert found.status == "error"
    assert KEYS[provider] not in repr(asdict(found))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_json_is_asked_for_in_each_formats_own_way(fleet: Fleet, provider: str) -> None:
    completion = asking(provider, "plain", json_mode=True)

    found = complete(fleet, completion)

    assert isinstance(json.loads(found.content or ""), dict)
    assert found.response_format == "json_object"
    assert found.tool_calls == 0
    body = sent_to(fleet, completion)
    said = {
        "openai": body.get("response_format") == {"type": "json_object"},
        "anthropic": len(body.get("tools", ())) == 1,
        "gemini": "application/json" in body.get("generationConfig", {}).values(),
        "ollama": body.get("format") == "json",
    }
    assert said[provider]


def test_a_model_that_no_upstream_serves_is_named(fleet: Fleet) -> None:
    with pytest.raises(UnknownModel, match=r"'nobody/knows'.*provider/model"):
        complete(fleet, asking("openai", "plain", model="nobody/knows"))


def test_a_suffix_that_names_a_window_is_kept_from_the_upstream(fleet: Fleet) -> None:
    found = complete(fleet, asking("ollama", "plain", model="ollama/my-own-model[1m]"))

    assert (found.model, found.upstream_model) == ("ollama/my-own-model[1m]", "my-own-model")


def test_a_bare_model_goes_to_the_default_upstream(fleet: Fleet) -> None:
    completion = asking("ollama", "plain", model="my-own-model")

    found = complete(fleet, completion, default="ollama")

    assert (found.provider, found.upstream_model) == ("ollama", "my-own-model")
    assert found.budget_model == "ollama/my-own-model"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("my-own", None),  # a row knows the id as it was asked for
        ("ollama/my-own", "ollama/my-own-model"),  # … only with the provider before it
        ("other", None),  # … not at all: the fallback's, by the id that was asked for
    ],
)
def test_budgets_are_found_by_the_name_the_gateway_uses(
    fleet: Fleet, key: str, expected: str | None
) -> None:
    rows = [make_spec(each) for each in ("", key)]

    found = complete(
        fleet,
        asking("ollama", "plain", model="my-own-model"),
        default="ollama",
        rules=BudgetTable(rows),
    )

    assert found.budget_model == expected


def test_text_that_is_no_unicode_is_sent_all_the_same(fleet: Fleet) -> None:
    for provider in PROVIDERS:
        found = complete(fleet, asking(provider, "plain", user="half \ud83d a pair"))

        assert found.status == "success", provider


def test_cancelling_closes_the_connection(fleet: Fleet) -> None:
    completion = asking("openai", "hang")

    async def scene() -> None:
        async with completer(endpoints_of(fleet), default="", clock=lambda: NOW) as ask:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(completion), 0.3)

    run(scene())
    (seen,) = fleet.openai.seen(completion.model.rpartition(".")[2])
    assert seen.hung_up.wait(2)


def test_the_servers_own_connections_are_used_and_left_open(fleet: Fleet) -> None:
    async def scene() -> tuple[Capture, Capture]:
        async with calling() as client:
            shared = Shared(client, Listings(client))
            found = []
            for _ in range(2):
                async with completer(
                    endpoints_of(fleet), default="", clock=lambda: NOW, shared=shared
                ) as ask:
                    found.append(await ask(asking("gemini", "plain")))
            return found[0], found[1]

    first, second = run(scene())
    assert first.content == second.content == WHOLE


def test_a_caller_on_another_loop_is_served_on_the_connections_loop(fleet: Fleet) -> None:
    async def scene() -> None:
        async with calling() as client:
            shared = Shared(client, Listings(client))

            def elsewhere() -> Capture:
                async def ask_there() -> Capture:
                    own = endpoints_of(fleet, "openai")
                    async with completer(own, default="", clock=lambda: NOW, shared=shared) as ask:
                        found = await ask(asking("openai", "plain"))
                    with pytest.raises(UnknownModel):
                        await ask(asking("openai", "plain", model="nobody/knows"))
                    return found

                return asyncio.run(ask_there())

            found = await asyncio.to_thread(elsewhere)
            assert found.content == WHOLE

    run(scene())
