"""The MCP face as a part of the server: what it costs at the start, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import httpx

from tests.mcp.world import CATALOG, INTENT, World, answer, rpc
from tests.support.environment import ROOT
from tests.support.server import Served
from tests.support.upstreams.scripted import run_scripted

_LOAD = """
import django, sys
django.setup()
import helmdash.asgi
print([name for name in ("mcp", "mcp_types", "starlette") if name in sys.modules])
"""


def test_the_server_starts_without_loading_the_sdk() -> None:
    """It takes half a second, and most servers never meet an MCP client."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "helmdash.settings"}

    done = subprocess.run(
        [sys.executable, "-c", _LOAD],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stdout.strip() == "[]", done.stderr


def test_a_plan_under_way_is_answered_before_the_server_stops(
    serve: Callable[..., Served],
) -> None:
    with run_scripted(answer) as model:
        served = serve(
            OPENROUTER_API_KEY="sk-or-test-4c8e20",
            OPENROUTER_BASE_URL=model.base_url,
            HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        )
        headers = {**served.headers, "accept": "application/json, text/event-stream"}
        wanted = {"user_intent": INTENT, "model": "openrouter/slow", "catalog": CATALOG}
        asked = {"name": "plan", "arguments": wanted}
        answers: list[httpx.Response] = []

        def ask() -> None:
            with httpx.Client(headers=headers, timeout=30) as http:
                url = f"{served.base_url}/mcp"
                answers.append(http.post(url, json=rpc("tools/call", asked)))

        asking = threading.Thread(target=ask)
        asking.start()
        _wait_until(lambda: bool(model.heard))
        code = served.stop()
        asking.join(30)

    (response,) = answers
    assert response.headers["content-type"].startswith("text/event-stream")
    (data,) = [line for line in response.text.splitlines() if line.startswith("data:")]
    result = json.loads(data.removeprefix("data:"))["result"]
    assert result["structuredContent"]["plan_id"]
    assert code == 0
    assert "ERROR" not in served.log
    assert "Warning" not in served.log


def test_nothing_that_was_asked_of_the_server_reached_its_log(world: World) -> None:
    """What clients get wrong is told to them; the log is for faults of our own."""
    before = world.served.log

    world.post(b"no json")
    world.post(rpc("tools/call", {"name": "plan", "arguments": {"user_intent": 5}}))
    world.post(rpc("resources/read", {"uri": "helmdeck://nothing"}))
    world.post(rpc("tools/list"), host="evil.example.com")

    assert world.served.log == before


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
