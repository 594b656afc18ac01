"""What a small request names is weighed as if it had brought it along."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import OperationalError

from helmdash.core.access.permissions import SHELL
from helmdash.doors.body import Bodies, Limits
from helmdash.doors.callers.directory import Directory, KeyContext
from helmdash.doors.callers.sessions import Sessions
from helmdash.doors.front import Front
from helmdash.doors.named_catalogs import NamedCatalogs
from helmdash.heavy import FORWARDER_KEY, WorkerForwarder
from helmdash.mcp.resources import RESOURCES
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.queries.access.access import find_caller
from helmdash.queries.budgets import budgets
from helmdash.queries.fitting import catalog
from helmdash.queries.fitting.catalog import CatalogSize
from helmdash.records.models import CatalogRevision
from tests.factories import NOW, make_key, make_project

OWN, OTHER = 7, 8
MANY, FEW = CatalogSize(entries=1_001, bytes=9), CatalogSize(entries=1_000, bytes=9)
SIZES = {
    (OWN, "many"): MANY,
    (OWN, "few"): FEW,
    (OWN, "long"): CatalogSize(entries=2, bytes=1_048_577),
    (OWN, ""): MANY,  # the current one
    (None, ""): MANY,
    (None, "few"): FEW,
}
INLINE: dict[str, object] = {"packs": [], "pipelines": []}
LIMITS = Limits(
    body_bytes=300_000, anonymous_bytes=9, all_bytes=999_999, seconds=9, anonymous_seconds=9
)


def size_of(project_id: int | None, name: str) -> CatalogSize:
    return SIZES.get((project_id, name), CatalogSize())


def scope_of(path: str, method: str = "POST", **over: Any) -> dict[str, Any]:
    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    return {**scope, FORWARDER_KEY: WorkerForwarder("no:where"), **over}


def tool(name: str, **arguments: object) -> dict[str, object]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


def is_large(path: str, body: object, method: str = "POST", project_id: int | None = OWN) -> bool:
    data = urlencode(body).encode() if path.startswith("/try") else json.dumps(body).encode()  # type: ignore[arg-type]
    weighing = NamedCatalogs(size_of).is_large(scope_of(path, method), data, project_id=project_id)
    return asyncio.run(weighing)


@pytest.mark.parametrize("path", ["/api/v1/fit", "/api/v1/rank", "/api/v1/plan", "/api/v1/route"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"catalog_name": "many"}, True),
        ({"catalog_name": "long"}, True),
        ({"catalog_name": "few"}, False),
        ({"catalog_name": "nobody's"}, False),
        ({}, True),
        ({"catalog": None, "catalog_name": None}, True),
        ({"catalog": INLINE}, False),  # weighed as it is
        ([], False),
        ("x", False),
    ],
)
def test_the_api_weighs_the_catalog_that_a_body_names(
    path: str, body: object, expected: bool
) -> None:
    assert is_large(path, body) is expected


@pytest.mark.parametrize(
    ("path", "body", "method", "project_id", "expected"),
    [
        # agents
        ("/mcp", tool("fit", catalog_name="many"), "POST", OWN, True),
        ("/mcp", tool("plan"), "POST", OWN, True),
        ("/mcp/", tool("route"), "POST", OWN, True),
        ("/mcp", tool("plan", catalog_name="few"), "POST", OWN, False),
        ("/mcp", tool("plan", catalog=INLINE), "POST", OWN, False),
        ("/mcp", tool("record_call"), "POST", OWN, False),
        ("/mcp", {"method": "tools/list"}, "POST", OWN, False),
        ("/mcp", {"method": "tools/call", "params": []}, "POST", OWN, False),
        # looked at before the message is checked
        ("/mcp", {"method": "tools/call", "params": {"name": ["plan"]}}, "POST", OWN, False),
        # people, of whatever project
        ("/try/fit/", {"intent": "x"}, "POST", None, True),
        ("/try/plan/", {"catalog_name": " few "}, "POST", None, False),
        ("/try/route/", {"catalog": "{}"}, "POST", None, False),
        ("/try/fit/", [("intent", "x")] * 1_001, "POST", None, False),  # will be refused
        ("/catalog/", {}, "GET", None, True),
        # reading one
        ("/api/v1/catalogs/many", {}, "GET", OWN, True),
        ("/api/v1/catalogs/few", {}, "GET", OWN, False),
        ("/api/v1/catalogs/", {}, "GET", OWN, False),
        ("/api/v1/catalogs", {}, "GET", OWN, False),
        # nothing to do with catalogs
        ("/api/v1/calls", {}, "POST", OWN, False),
        ("/api/v1/fit", {}, "POST", OTHER, False),
        ("/try/fit/", {}, "GET", None, False),
    ],
)
def test_every_other_place_that_works_with_a_stored_catalog_does_so(
    path: str, body: object, method: str, project_id: int | None, expected: bool
) -> None:
    assert is_large(path, body, method, project_id) is expected


def test_the_resource_that_is_a_catalog_is_weighed() -> None:
    large = [
        resource.name
        for resource in RESOURCES
        if is_large("/mcp", {"method": "resources/read", "params": {"uri": resource.uri}})
    ]

    assert large == ["routing-guide"]


def test_a_name_is_looked_up_once_a_second_and_a_silent_database_is_nobodys_fault() -> None:
    asked: list[str] = []

    def read(project_id: int | None, name: str) -> CatalogSize:
        asked.append(name)
        if name == "away":
            raise OperationalError
        return size_of(project_id, name)

    async def ask(names: Iterable[str]) -> list[bool]:
        named = NamedCatalogs(read)
        return [
            await named.is_large(
                scope_of("/api/v1/fit"),
                json.dumps({"catalog_name": name}).encode(),
                project_id=OWN,
            )
            for name in names
        ]

    assert asyncio.run(ask(["many", "many", "few", "away"])) == [True, True, False, False]
    assert asked == ["many", "few", "away"]


def test_the_worker_itself_weighs_nothing() -> None:
    scope = {**scope_of("/api/v1/fit"), FORWARDER_KEY: None}

    assert not asyncio.run(NamedCatalogs(size_of).is_large(scope, b"{}", project_id=OWN))


def store(project_id: int, name: str, entries: int, number: int = 1) -> CatalogRevision:
    return CatalogRevision.objects.create(
        project_id=project_id,
        name=name,
        number=number,
        body="{}",
        digest=f"{number}",
        bytes=entries,
        packs=entries - 1,
        pipelines=1,
        created_at=NOW,
    )


def test_the_newest_revision_counts_and_without_a_project_the_largest(db: None) -> None:
    project, other = make_project(), make_project(slug="other")
    store(project.id, "tools", 5_000)
    store(project.id, "tools", 20, number=2)
    store(other.id, "tools", 30)
    body = {"packs": [{"name": "a", "description": "A."}], "pipelines": []}
    import_catalog(actor=SHELL, project_id=other.id, name="now", body=body, now=NOW)

    def entries(project_id: int | None, name: str | None = None) -> int:
        return catalog.size(project_id=project_id, name=name).entries

    assert (entries(project.id, "tools"), entries(other.id, "tools")) == (20, 30)
    assert (entries(project.id), entries(other.id)) == (0, 1)
    assert entries(None) == 1
    assert entries(None, "tools") == 5_000
    assert entries(None, "nobody's") == 0


class Noting(WorkerForwarder):
    def __init__(self) -> None:
        super().__init__("no:where")
        self.taken: list[tuple[str, bytes]] = []

    async def forward(self, scope: Any, body: bytes, receive: Any, send: Any) -> None:
        self.taken.append((scope["path"], body))


def test_the_door_hands_such_a_request_to_the_worker(db: None) -> None:
    asked: list[str] = []
    make_project()
    caller = find_caller(key=make_key())
    assert caller is not None
    standing = KeyContext(
        caller=caller, rules=budgets.table(project_id=caller.project.id), endpoints=()
    )
    here: list[bytes] = []
    many, few = (json.dumps({"catalog_name": name}).encode() for name in ("many", "few"))
    # To read it would hold up others for as long as the worker takes to.
    heavy = json.dumps({"catalog_name": "in a heavy body", "context": [0] * 60_000}).encode()

    def size(_project: int | None, name: str) -> CatalogSize:
        asked.append(name)
        return MANY if name == "many" else FEW

    async def app(scope: Any, receive: Any, send: Any) -> None:
        here.append((await receive())["body"])

    async def ask(forwarder: WorkerForwarder) -> None:
        front = Front(
            app=app,
            directory=Directory(read=lambda _key: standing),
            sessions=Sessions(),
            bodies=Bodies(LIMITS),
            turn_away=lambda _request: None,
            catalogs=NamedCatalogs(size),
        )
        for body in (many, few, heavy):
            length = str(len(body)).encode()
            headers = [(b"authorization", b"Bearer k"), (b"content-length", length)]
            messages = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive(messages: Any = messages) -> Any:
                return next(messages)

            over: dict[str, Any] = {"headers": headers, FORWARDER_KEY: forwarder}
            await front(scope_of("/api/v1/fit", **over), receive, None)  # type: ignore[arg-type]

    noting = Noting()
    asyncio.run(ask(noting))

    assert noting.taken == [("/api/v1/fit", many), ("/api/v1/fit", heavy)]
    assert here == [few]
    assert asked == ["many", "few"]
