"""Who and what is let in: keys, hosts, bodies; and what hostile clients get."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.mcp.world import INTENT, MODES, READER, RECORDER, Mode, World, rpc

if TYPE_CHECKING:
    from mcp import Client, MCPError

both_modes = pytest.mark.parametrize("mode", MODES)

# What a pydantic or Python text in an answer would look like.
_INNARDS = ("Traceback", "pydantic", 'File "', "input_value", "errors.pydantic")


def _refused(world: World, headers: dict[str, str]) -> httpx.Response:
    with httpx.Client(timeout=30) as http:
        return http.post(world.url, json=rpc("tools/list"), headers=headers)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({}, "Send a HelmDash API key"),
        ({"authorization": "Bearer hd_wrong"}, "unknown or revoked"),
        ({"x-api-key": "hd_wrong"}, "unknown or revoked"),
        ({"authorization": "Basic dXNlcjpwYXNz"}, "Send a HelmDash API key"),
        ({"authorization": "Bearer"}, "Send a HelmDash API key"),
    ],
    ids=["no key", "wrong key", "wrong x-api-key", "another scheme", "an empty key"],
)
def test_without_a_key_of_ours_nobody_comes_in(
    world: World, headers: dict[str, str], sentence: str
) -> None:
    response = _refused(world, headers)

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith('Bearer realm="HelmDash"')
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert sentence in error["message"]
    assert "apikey create" in error["message"]
    assert error["data"] == {"error": "unauthorized"}


@pytest.mark.one_database
@both_modes
def test_the_official_client_shows_why_it_is_refused(world: World, mode: Mode) -> None:
    async def list_tools(client: Client) -> object:
        return await client.list_tools()

    from mcp import MCPError

    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        world.visit(list_tools, mode, key="hd_wrong")

    (error,) = _leaves(caught.value)
    assert isinstance(error, MCPError)
    assert error.code == 401
    assert "unknown or revoked" in error.message


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


@pytest.mark.one_database
def test_x_api_key_is_as_good_as_bearer(world: World) -> None:
    assert _refused(world, {"x-api-key": READER, "accept": "application/json"}).is_success


@both_modes
@pytest.mark.parametrize(
    ("tool", "key", "lacking"),
    [
        ("plan", READER, "plan"),
        ("route", READER, "plan"),
        ("fit", READER, "fit"),
        ("record_call", READER, "record"),
        ("conversation_health", RECORDER, "read"),
    ],
)
def test_a_tool_names_the_scope_that_a_key_lacks(
    world: World, mode: Mode, tool: str, key: str, lacking: str
) -> None:
    told, is_error = world.call(tool, {}, mode, key=key)

    assert is_error
    assert told["error"] == "forbidden"
    assert told["scope"] == lacking
    assert f"lacks the scope {lacking}" in told["message"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    "host",
    [
        "helm.example.org",
        "helm.example.org:8443",
        "localhost:1234",
        "127.0.0.1",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "[::ffff:7f00:1]",
    ],
)
def test_hosts_of_the_server_are_welcome(world: World, host: str) -> None:
    assert world.post(rpc("tools/list"), host=host).status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("evil.example.com", "", 400),
        ("user@localhost", "", 400),
        ("localhost", "https://evil.example.com", 403),
        ("localhost", "null", 403),
        ("localhost", "http://localhost.evil.example.com", 403),
    ],
)
def test_other_names_of_the_server_are_not(
    world: World, host: str, origin: str, status: int
) -> None:
    response = world.post(rpc("tools/list"), host=host, **({"origin": origin} if origin else {}))

    assert response.status_code == status
    assert "HELMDASH_ALLOWED_HOSTS" in response.json()["error"]["message"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    "origin",
    ["http://localhost:6274", "https://helm.example.org", "vscode-webview://abc"],
)
def test_pages_of_the_server_and_editors_may_ask(world: World, origin: str) -> None:
    assert world.post(rpc("tools/list"), origin=origin).status_code == 200


@pytest.mark.one_database
def test_there_is_nothing_to_get_and_nothing_to_delete(world: World) -> None:
    for method in ("GET", "DELETE", "PUT"):
        response = world.http.request(method, "/mcp", headers={"accept": "text/event-stream"})

        assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"no json", 400),
        (b"[]", 400),
        (b'"x"', 400),
        (b"[" * 100_000, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 400),
        (b'{"jsonrpc":"2.0","id":1}', 400),
        (b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', 400),
        (b'{"id":1,"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":NaN}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400),
        # Nested deeper than what could be written again.
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":'
            + b"[" * 230
            + b"]" * 230
            + b"}}",
            400,
        ),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value[:40]),
)
def test_what_is_no_request_is_refused_in_plain_words(
    world: World, body: bytes, status: int
) -> None:
    response = world.post(body)

    assert response.status_code == status
    assert response.json()["error"]["message"]
    assert not any(word in response.text for word in _INNARDS)


@pytest.mark.one_database
def test_a_body_may_have_8_mib_and_no_more(world: World) -> None:
    def asked(size: int) -> bytes:
        arguments = {"model": "openai/gpt-4o", "intent": "x" * size}
        return json.dumps(rpc("tools/call", {"name": "fit", "arguments": arguments})).encode()

    assert world.post(asked(1024 * 1024)).status_code == 200
    too_large = world.post(asked(8 * 1024 * 1024))
    assert too_large.status_code == 413
    assert "HELMDASH_MAX_BODY_BYTES" in too_large.json()["error"]["message"]


@pytest.mark.one_database
@both_modes
def test_an_unknown_tool_is_an_error_that_names_those_there_are(world: World, mode: Mode) -> None:
    async def call(client: Client) -> MCPError:
        from mcp import MCPError

        with pytest.raises(MCPError) as caught:
            await client.session.call_tool("helmdeck.plna", {})
        return caught.value

    error = world.visit(call, mode)

    assert error.code == -32602
    assert "conversation_health" in error.message


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("plan", {}, "user_intent"),
    ("plan", {"user_intent": "   ", "model": "sim/planner"}, "user_intent"),
    ("plan", {"user_intent": 5, "model": "sim/planner"}, "user_intent"),
    ("plan", {"user_intent": INTENT, "model": "nowhere/at-all"}, "model"),
    ("plan", {"user_intent": INTENT}, "model"),
    ("plan", {"user_intent": INTENT, "model": "sim/planner", "max_tokens": 0}, "max_tokens"),
    ("plan", {"user_intent": INTENT, "model": "sim/planner", "max_tokens": "9"}, "max_tokens"),
    ("plan", {"user_intent": INTENT, "modle": "sim/planner"}, "modle"),
    ("plan", {"user_intent": INTENT, "model": "sim/planner", "catalog": 7}, "catalog"),
    ("plan", {"user_intent": INTENT, "model": "sim/planner", "catalog_name": "no"}, "catalog_name"),
    ("plan", {"user_intent": INTENT, "model": "sim/planner", "continues": "no"}, "continues"),
    ("plan", {"user_intent": "a\x00b", "model": "sim/planner"}, "user_intent"),
    ("plan", {"user_intent": INTENT, "context": {"a": [{"b": "\x00"}]}}, "context.a.0.b"),
    ("route", {"user_intent": INTENT, "prompt_variant": "all"}, "prompt_variant"),
    ("fit", {"model": "m", "intent": "i", "catalog": {"packs": [{}]}}, "catalog.packs.0.name"),
    ("fit", {"model": "m", "intent": "i", "catalog": {"packs": 1}}, "catalog.packs"),
    ("fit", {"model": "", "intent": "i"}, "model"),
    ("fit", {"model": "m", "intent": "i", "history": [{"intent": "x"}]}, "history.0.tools"),
    ("fit", {"model": "m", "intent": "i", "catalog_name": "../../etc"}, "catalog_name"),
    ("record_call", {"model": "m", "usage": 5}, "usage"),
    ("record_call", {"model": "m", "conversation": "a/b"}, "conversation"),
    ("record_call", {"model": "m\nn"}, "model"),
    ("record_call", {"model": "m", "started_at": "yesterday"}, "started_at"),
    ("record_call", {"model": "m", "http_status": True}, "http_status"),
    ("record_call", {"model": "m", "latency_ms": 1e300}, "latency_ms"),
    ("record_call", {"model": "m", "sent": {"bites": 1}}, "sent.bites"),
    ("conversation_health", {"conversation": "x" * 256}, "conversation"),
    ("conversation_health", {"conversation": "nobody"}, ""),
    ("conversation_health", {}, "conversation"),
]


@pytest.mark.one_database
@pytest.mark.parametrize(("tool", "arguments", "field"), HOSTILE)
def test_wrong_arguments_are_named(
    world: World, tool: str, arguments: dict[str, Any], field: str
) -> None:
    response = world.post(rpc("tools/call", {"name": tool, "arguments": arguments}))

    assert response.status_code == 200
    result = response.json()["result"]
    told = result["structuredContent"]
    assert result["isError"] is True
    assert told["message"]
    if field:
        assert told["error"] == "invalid"
        assert field in [each["field"] for each in told["errors"]], told
    assert not any(word in response.text for word in _INNARDS)


@both_modes
def test_numbers_beyond_64_bits_come_back_as_they_were(world: World, mode: Mode) -> None:
    pack = {"name": "big", "description": "d", "number": 2**80}

    told, is_error = world.call(
        "fit", {"model": "openai/gpt-4o", "intent": "x", "catalog": {"packs": [pack]}}, mode
    )

    assert not is_error
    assert told["catalog"]["packs"] == [pack]


def test_clients_at_the_same_time_are_told_apart(world: World) -> None:
    """Who asks belongs to the request, not to the server."""

    async def scope(key: str) -> str:
        async with world.client(key=key) as client:
            (block,) = (await client.read_resource("helmdeck://my-plans")).contents
            return str(json.loads(block.text)["scope"])  # type: ignore[union-attr]

    async def many() -> list[str]:
        keys = [READER, world.served.api_key] * 4
        return list(await asyncio.gather(*map(scope, keys)))

    assert asyncio.run(many()) == ["caller=reader", "caller=bootstrap"] * 4
