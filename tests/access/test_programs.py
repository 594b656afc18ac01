"""Every route of the API and the gateway, every tool and resource, against every kind of caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import Client

from helmdash.api.routes import ROUTES as API_ROUTES
from helmdash.core.access.permissions import Scope
from helmdash.doors.asgi import Message
from helmdash.doors.body import Bodies, Limits
from helmdash.doors.callers.directory import Directory, KeyContext
from helmdash.doors.callers.knocks import Knocks
from helmdash.gateway.app import Gateway
from helmdash.gateway.requests import routes as gateway_routes
from helmdash.mcp.problems import problem_of
from helmdash.mcp.resources import HEALTH_TEMPLATE, RESOURCES, read_resource
from helmdash.mcp.tools import TOOLS
from helmdash.mcp.visit import VISIT_KEY, Visit
from helmdash.operations.recorder import recorder
from helmdash.otlp.app import OtlpApp
from helmdash.otlp.signals import SIGNALS, Signal
from helmdash.queries.access.access import Caller, find_caller
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listings import Listings
from tests.access.cast import KEYS, PEOPLE, House, browser, holds, key_of, on_both
from tests.api.conftest import PREFIX
from tests.api.test_access import ROUTES

KEYS_THAT_HOLD = [key for key in KEYS if key != "revoked"]
MEMBERS = ("viewer", "editor", "owner", "superuser", "other_owner")


@pytest.fixture
def house(full_house: House, db: None) -> House:
    return full_house


# --- the API


def test_every_route_of_the_api_is_in_its_table() -> None:
    assert {route.name: route.scope for route in API_ROUTES} == {
        name: row[0] for name, row in ROUTES.items()
    }


# What is left of a try to plan is stored later, by whoever records next.
_ASKS = ("plan", "route_intent")


def _send(client: Client, name: str, number: int) -> int:
    _, method, path, body, _ = ROUTES[name]
    if name in _ASKS:
        body = {}  # let in, and told what is missing, before a model is looked for
    content = b"" if body is None else json.dumps(body).encode()
    # Each from another address: wrong keys from one are slowed down.
    return client.generic(
        method,
        PREFIX + path,
        content,
        "application/json",
        REMOTE_ADDR=f"10.1.0.{number}",
    ).status_code


@pytest.mark.parametrize("who", on_both(KEYS, "admin", "all_elsewhere"))
def test_what_keys_may_ask_of_the_api(house: House, who: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {key_of(who, house)}"})

    wrong = []
    for number, (name, row) in enumerate(ROUTES.items()):
        status = _send(client, name, number)
        refused = 401 if who == "revoked" else 403
        if (status == refused) is holds(who, row[0]) or status == 500:
            wrong.append((name, status))

    assert wrong == []


@pytest.mark.parametrize("who", on_both(["nobody", *PEOPLE], "superuser", "other_owner"))
def test_people_read_by_their_session_and_write_nothing(house: House, who: str) -> None:
    client = browser(who, house)

    wrong = []
    for number, (name, (_, method, _, _, _)) in enumerate(ROUTES.items()):
        status = _send(client, name, number)
        if who == "nobody" or method != "GET":
            is_right = status == 401
        else:
            is_right = status in (200, 404) if who in MEMBERS else status == 403
        if not is_right:
            wrong.append((name, status))

    assert wrong == []


def test_a_session_of_another_project_reads_no_row_of_this_one(house: House) -> None:
    client = browser("other_owner", house)

    assert client.get(f"{PREFIX}/calls/call-0").status_code == 404
    assert client.get(f"{PREFIX}/calls").json()["items"] == []
    assert browser("viewer", house).get(f"{PREFIX}/calls/call-0").status_code == 200


@pytest.mark.parametrize("who", KEYS_THAT_HOLD)
@pytest.mark.parametrize("whose", ["every project", "the default project"])
def test_rows_of_budgets_are_changed_by_keys_of_their_project(
    house: House, who: str, whose: str
) -> None:
    """Rows of every project take an admin key of the default one."""
    client = Client(headers={"Authorization": f"Bearer {key_of(who, house)}"})
    is_global = whose == "every project"
    row = Budget.objects.get(key="openai/gpt-4o" if is_global else "acme/one")
    may = who == Scope.ADMIN or (who == Scope.BUDGETS and not is_global)
    json_type = "application/json"

    patched = client.patch(f"{PREFIX}/budgets/{row.pk}", {"input_tokens": 7_000}, json_type)
    given = {"key": "new/one", "input_tokens": 1, "output_tokens": 1, "tier": "C"}
    target = None if is_global else house.project.slug
    made = client.post(f"{PREFIX}/budgets", {**given, "project": target}, json_type)
    deleted = client.delete(f"{PREFIX}/budgets/{row.pk}")

    row_now = Budget.objects.filter(pk=row.pk).first()
    assert (patched.status_code, made.status_code, deleted.status_code) == (
        (200, 201, 204) if may else (patched.status_code, made.status_code, deleted.status_code)
    )
    assert (row_now is None) is may
    assert Budget.objects.filter(key="new/one").exists() is may
    if not may:
        assert row_now is not None
        assert row_now.input_tokens == row.input_tokens
        # A row that the key does not see is not there; one that it sees is not its own.
        assert patched.status_code in (403, 404)


@pytest.mark.parametrize("who", [Scope.BUDGETS, Scope.ADMIN, "all_elsewhere", "admin_elsewhere"])
def test_a_new_row_is_of_the_keys_own_project(house: House, who: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {key_of(who, house)}"})
    given = {"key": "new/one", "input_tokens": 1, "output_tokens": 1, "tier": "C"}

    answer = client.post(f"{PREFIX}/budgets", given, "application/json")

    own = house.other if str(who).endswith("elsewhere") else house.project
    assert answer.status_code == 201
    assert answer.json()["project"] == own.slug
    assert Budget.objects.get(key="new/one").project_id == own.id


# --- the gateway

GATEWAY: dict[str, str] = {
    **{path: route.method for path, route in gateway_routes._EXACT.items()},
    "/v1/responses/resp_1": "GET",
    "/v1/responses/resp_1/cancel": "POST",
    "/v1/models": "GET",
    "/v1/models/openai/gpt-4o": "GET",
    "/v1beta/models": "GET",
    "/v1beta/models/gpt:generateContent": "POST",
    "/v1beta/models/gpt:streamGenerateContent": "POST",
    "/v1beta/models/gpt:countTokens": "POST",
}
# What the gateway does not serve: everybody is told the right address, and nothing else.
LOST = {"/v1/unknown": "POST", "/api/pull": "POST"}
_LIMITS = Limits(
    body_bytes=10_000,
    anonymous_bytes=10_000,
    all_bytes=100_000,
    seconds=10,
    anonymous_seconds=10,
)


def test_every_action_of_the_gateway_is_in_the_table() -> None:
    found = {gateway_routes.find_route(path, {}, b"") for path in (*GATEWAY, *LOST)}

    assert None not in found
    assert {route.action for route in found if route} == set(gateway_routes.Action)


@pytest.mark.parametrize("who", on_both(["nobody", *KEYS], "admin"))
def test_what_keys_may_ask_of_the_gateway(house: House, who: str) -> None:
    caller = None if who == "nobody" else find_caller(key=key_of(who, house))
    key_context = None
    if caller is not None:
        rules = budgets.table(project_id=caller.project.id)
        key_context = KeyContext(caller=caller, rules=rules, endpoints=())

    statuses = asyncio.run(_through_the_gateway(key_context, with_key=who != "nobody"))

    assert {statuses.pop(path) for path in LOST} == {404}
    refused = 401 if caller is None else 403
    may = caller is not None and holds(who, Scope.RECORD)
    wrong = [(path, status) for path, status in statuses.items() if (status == refused) is may]
    assert wrong == []
    assert not [path for path, status in statuses.items() if status >= 500]


async def _through_the_gateway(key_context: KeyContext | None, *, with_key: bool) -> dict[str, int]:
    directory = Directory(read=lambda _key: key_context)
    client = UpstreamClient()

    async def rest(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(f"{scope['path']} is none of the gateway's")

    gateway = Gateway(
        recorder=recorder(),
        client=client,
        listings=Listings(client),
        directory=directory,
        bodies=Bodies(_LIMITS),
        rest=rest,
        # Noted by what knows no key; nothing is to be written here.
        knocks=Knocks(flush_seconds=3600),
    )
    try:
        return {
            path: await _asgi(gateway, method, path, number, with_key=with_key)
            for number, (path, method) in enumerate((GATEWAY | LOST).items())
        }
    finally:
        gateway.close()
        directory.close()
        await client.aclose()


async def _asgi(
    app: Callable[..., Awaitable[None]], method: str, path: str, number: int, *, with_key: bool
) -> int:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [(b"authorization", b"Bearer hd_some-key")] if with_key else []
    sent: list[Message] = []

    async def receive() -> Message:
        # No JSON: whoever is let in is told so, and nothing is recorded.
        return {"type": "http.request", "body": b"{", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": (f"10.2.0.{number}", 1),
        "server": ("localhost", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


# --- OTLP


@pytest.mark.parametrize("who", on_both(["nobody", *KEYS], "admin"))
def test_what_keys_may_ask_of_otlp(house: House, who: str) -> None:
    caller = None if who == "nobody" else find_caller(key=key_of(who, house))
    context = None
    if caller is not None:
        rules = budgets.table(project_id=caller.project.id)
        context = KeyContext(caller=caller, rules=rules, endpoints=())

    statuses = asyncio.run(_through_otlp(context, with_key=who != "nobody"))

    refused = 401 if caller is None else 403
    may = caller is not None and holds(who, Scope.RECORD)
    assert statuses == [400 if may else refused] * len(Signal)


async def _through_otlp(context: KeyContext | None, *, with_key: bool) -> list[int]:
    directory = Directory(read=lambda _key: context)
    app = OtlpApp(
        recorder=recorder(),
        directory=directory,
        bodies=Bodies(_LIMITS),
        knocks=Knocks(flush_seconds=3600),
    )
    try:
        return [
            await _asgi(app, "POST", path, number, with_key=with_key)
            for number, path in enumerate(SIGNALS)
        ]
    finally:
        app.close()
        directory.close()


# --- MCP

# Each with the scope that it takes; None: any valid key.
TOOL_SCOPES = {
    "plan": "plan",
    "route": "plan",
    "fit": "fit",
    "record_call": "record",
    "conversation_health": "read",
    "add_reminder": "record",
    "update_reminder": "record",
    "delete_reminder": "record",
    "clear_mind": "record",
}
RESOURCE_SCOPES = {
    "helmdeck://context-budgets": None,
    "helmdeck://my-plans": "read",
    "helmdeck://my-defaults": "read",
    "helmdeck://routing-guide": "read",
    "helmdeck://models": "read",
    "helmdeck://conversation-health/talk": "read",
}


class Inline:
    """Threads that are none: work is done in the thread of the test, where its transaction is."""

    async def run(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await sync_to_async(work)(*args, **kwargs)


def test_every_tool_and_resource_is_in_the_table() -> None:
    assert {tool.name for tool in TOOLS} == set(TOOL_SCOPES)
    addresses = {resource.uri for resource in RESOURCES} | {HEALTH_TEMPLATE.uri}
    assert {uri.replace("{id}", "talk") for uri in addresses} == set(RESOURCE_SCOPES)


@pytest.mark.parametrize("who", on_both(KEYS_THAT_HOLD, "admin", "all_elsewhere"))
def test_what_keys_may_ask_of_mcp(house: House, who: str) -> None:
    caller = find_caller(key=key_of(who, house))
    assert caller is not None

    tools, resources = async_to_sync(_through_mcp)(caller)

    assert tools == {name: holds(who, scope) for name, scope in TOOL_SCOPES.items()}
    assert resources == {uri: holds(who, scope) for uri, scope in RESOURCE_SCOPES.items()}


async def _through_mcp(caller: Caller) -> tuple[dict[str, bool], dict[str, bool]]:
    """Of each tool and each resource, whether the caller was let in."""
    from helmdash.mcp.server import _call_tool

    client = UpstreamClient()
    shared: Any = SimpleNamespace(listings=Listings(client))
    visit = Visit(caller=caller, threads=Inline(), shared=shared)  # type: ignore[arg-type]
    request = SimpleNamespace(scope={VISIT_KEY: visit})
    context: Any = SimpleNamespace(request=request, session=None)
    tools = {}
    for name in TOOL_SCOPES:
        # No arguments: whoever gets as far as to be told so was let in.
        params: Any = SimpleNamespace(name=name, arguments={})
        result = await _call_tool(context, params)
        told = result.structured_content or {}
        assert told["error"] in ("invalid", "forbidden"), told
        tools[name] = told["error"] != "forbidden"
    resources = {}
    for uri in RESOURCE_SCOPES:
        try:
            await read_resource(visit, uri)
        except Exception as error:
            word = problem_of(error).word
            assert word in ("forbidden", "not_found"), word
            resources[uri] = word != "forbidden"
        else:
            resources[uri] = True
    await client.aclose()
    return tools, resources


# --- the three for machines


@pytest.mark.parametrize("who", on_both([*PEOPLE, *KEYS, "nobody"], "viewer", "read"))
def test_metrics_take_a_key_that_reads_and_liveness_takes_none(house: House, who: str) -> None:
    if who in PEOPLE or who == "nobody":
        client = browser(who, house)
        allowed = who in MEMBERS
    else:
        client = Client(headers={"Authorization": f"Bearer {key_of(who, house)}"})
        allowed = holds(who, Scope.READ)

    assert (client.get("/metrics").status_code == 200) is allowed
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code in (200, 503)
