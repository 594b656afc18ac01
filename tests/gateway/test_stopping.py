"""A server that is asked to stop: calls under way get their time, and then an answer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from tests.gateway.world import model_of
from tests.support.server import Served
from tests.support.upstreams.fleet import run_fleet

USER = [{"role": "user", "content": "Say something."}]


@pytest.mark.slow
def test_calls_that_take_too_long_are_told_that_the_server_stops(
    serve: Callable[..., Served],
) -> None:
    with run_fleet() as fleet:
        server = serve(DATABASE_URL="", HELMDASH_STOP_SECONDS="1", **fleet.environment())

        def ask(behaviour: str, *, stream: bool) -> httpx.Response:
            body = {"model": model_of("openai", behaviour), "messages": USER, "stream": stream}
            with httpx.Client(headers=server.headers, timeout=30, trust_env=False) as client:
                return client.post(f"{server.base_url}/v1/chat/completions", json=body)

        with ThreadPoolExecutor(2) as pool:
            whole = pool.submit(ask, "hang", stream=False)
            streamed = pool.submit(ask, "hang-midway", stream=True)
            fleet.openai.wait_for("hang", count=2)
            server.stop()

            assert whole.result().status_code == 503
            assert whole.result().json()["error"]["code"] == "gateway_stopped"
            *_, last = [
                line for line in streamed.result().text.splitlines() if line.startswith("data: {")
            ]
            assert json.loads(last.removeprefix("data: "))["error"]["code"] == "gateway_stopped"

        with closing(sqlite3.connect(server.data_dir / "helmdash.sqlite3")) as database:
            found = database.execute("SELECT status, cause_rule FROM records_call").fetchall()
        assert found == [("error", "gateway.stopped")] * 2
        assert "Traceback" not in server.log
