"""The world around the MCP face: a served HelmDash, keys, a model, and the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import httpx
import httpx2

from tests.support.server import Served
from tests.support.upstreams.scripted import Heard, Said, ScriptedModel

if TYPE_CHECKING:
    from mcp import Client

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
Result = TypeVar("Result")

URL = "https://example.com/post"
INTENT = f"Read {URL} and tell me in five lines what it says."
CATALOG: dict[str, Any] = {
    "packs": [
        {
            "name": "web.scrape",
            "description": "Gets the text of a web page.",
            "metadata": {"accepts": ["url"], "produces": ["text"], "intent_keywords": ["read"]},
        },
        {"name": "doc.summarize", "description": "Makes a text short.", "metadata": {}},
    ],
    "pipelines": [
        {
            "id": "digest",
            "name": "Digest",
            "description": "Reads a page and sums it up.",
            "metadata": {"supersedes": ["web.scrape", "doc.summarize"]},
        },
        {"id": "bare", "name": "Bare", "description": "Has no metadata.", "metadata": None},
    ],
}
PLAN = {
    "steps": [
        {"tool": "web.scrape", "args": {"url": URL}, "rationale": "Get the text."},
        {"tool": "doc.summarize", "args": {"lines": 5}, "rationale": "Make it short."},
    ],
    "complexity": "pack-chain",
    "reasoning": "In order.",
}
ROUTE: dict[str, Any] = {
    "recommendation": {"kind": "pipeline", "id": "digest", "why": "It does both."},
    "alternatives": [],
    "gap_warning": None,
    "reasoning": "One entry is enough.",
}
# Keys beside the first one: of the same project with other rights, and of another project.
PLANNER, READER, RECORDER, STRANGER = (
    f"hd_test_{name}_4c8e20" for name in ("planner", "reader", "recorder", "stranger")
)
_FURNISH = """
from django.utils import timezone
from helmdash.core.access.permissions import SHELL
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.records.models import ApiKey, Project, Upstream
own = Project.objects.get(is_default=True)
other = Project.objects.create(slug="other-house", name="Other")
for name, secret, project, scopes in (
    ("planner", {planner!r}, own, ["plan", "read"]),
    ("reader", {reader!r}, own, ["read"]),
    ("recorder", {recorder!r}, own, ["record"]),
    ("stranger", {stranger!r}, other, ["plan", "read", "fit", "record"]),
):
    key = ApiKey(name=name, project=project, scopes=scopes)
    key.issue(secret)
    key.save()
Upstream.objects.create(
    name="sim", kind="openai", base_url={url!r}, allow_private=True,
    models_served="planner\\nmute\\nslow*",
)
import_catalog(actor=SHELL, project_id=own.pk, name="house", body={catalog!r}, now=timezone.now())
"""


# What `slow.held` waits for.
let_go = Event()


def answer(heard: Heard) -> Said:
    """`planner` plans or routes, `mute` says nothing, `slow` takes its time; see `let_go`."""
    if heard.model == "mute":
        return Said(content="")
    said = ROUTE if "recommendation" in heard.system else PLAN
    if heard.model == "slow.held":
        return Said(content=json.dumps(said), until=let_go)
    return Said(content=json.dumps(said), delay_s=0.5 if heard.model.startswith("slow") else 0)


def furnish(served: Served, url: str) -> None:
    """Add what only the admin can: another project, keys, the upstream."""
    code = _FURNISH.format(
        planner=PLANNER,
        reader=READER,
        recorder=RECORDER,
        stranger=STRANGER,
        url=url,
        catalog=CATALOG,
    )
    done = served.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One running HelmDash with an MCP face."""

    served: Served
    model: ScriptedModel
    http: httpx.Client
    """Requests with the first key, which may do everything but administrate."""

    @property
    def url(self) -> str:
        return f"{self.served.base_url}/mcp"

    @asynccontextmanager
    async def client(
        self, mode: Mode = "auto", *, key: str | None = None, **headers: str
    ) -> AsyncIterator[Client]:
        """The official client; without `key`, with the first one."""
        # Half a second to load: not while each worker collects.
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        sent = {"Authorization": f"Bearer {key or self.served.api_key}", **headers}
        async with (
            httpx2.AsyncClient(headers=sent, trust_env=False, verify=False, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    def visit(
        self,
        do: Callable[[Client], Awaitable[Result]],
        mode: Mode = "auto",
        *,
        key: str | None = None,
        **headers: str,
    ) -> Result:
        """What a function gets out of a connected client."""

        async def run() -> Result:
            async with self.client(mode, key=key, **headers) as client:
                return await do(client)

        return asyncio.run(run())

    def call(
        self, tool: str, arguments: dict[str, Any], mode: Mode = "auto", *, key: str | None = None
    ) -> tuple[dict[str, Any], bool]:
        """The structured result of a tool, and whether it is an error. The text says the same."""

        async def do(client: Client) -> tuple[dict[str, Any], bool]:
            result = await client.call_tool(tool, arguments)
            (content,) = result.content
            assert content.type == "text"
            assert json.loads(content.text) == result.structured_content
            return result.structured_content, bool(result.is_error)

        return self.visit(do, mode, key=key)

    def read(self, uri: str, mode: Mode = "auto", *, key: str | None = None) -> dict[str, Any]:
        """A resource as JSON: one block, and nothing else."""

        async def do(client: Client) -> dict[str, Any]:
            (block,) = (await client.read_resource(uri)).contents
            assert str(block.uri) == uri
            assert block.mime_type == "application/json"
            found: dict[str, Any] = json.loads(block.text)  # type: ignore[union-attr]
            return found

        return self.visit(do, mode, key=key)

    def post(self, body: object, **headers: str) -> httpx.Response:
        """One request as the legacy protocol sends it, by hand."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"content-type": "application/json", "accept": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post("/mcp", content=content, headers={**usual, **named})


def rpc(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
