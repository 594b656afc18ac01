"""A server that is asked to stop while it plans: plans end in order, and say how."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from tests.gateway.world import model_of
from tests.support.server import Served
from tests.support.upstreams.fleet import run_fleet

CATALOG = {"packs": [{"name": "web.scrape", "description": "Gets the text of a web page."}]}


@pytest.mark.slow
def test_plans_under_way_end_as_failed_and_are_told_when_the_server_stops(
    serve: Callable[..., Served],
) -> None:
    with run_fleet() as fleet:
        server = serve(DATABASE_URL="", HELMDASH_STOP_SECONDS="1", **fleet.environment())
        body = {
            "user_intent": "Read a page.",
            "model": model_of("openai", "hang"),
            "catalog": CATALOG,
        }

        def ask(prefer: str) -> httpx.Response:
            headers = {**server.headers, "prefer": prefer}
            with httpx.Client(headers=headers, timeout=30, trust_env=False) as client:
                return client.post(f"{server.base_url}/api/v1/plan", json=body)

        assert ask("respond-async").status_code == 202
        with ThreadPoolExecutor(1) as pool:
            waited_for = pool.submit(ask, "wait=30")
            fleet.openai.wait_for("hang", count=2)
            assert server.stop() == 0

            told = waited_for.result()
        assert told.status_code == 503, told.text
        assert "stopping" in told.json()["detail"]

        with closing(sqlite3.connect(server.data_dir / "helmdash.sqlite3")) as database:
            plans = database.execute("SELECT outcome FROM records_planrecord").fetchall()
            calls = database.execute("SELECT purpose, status FROM records_call").fetchall()
        assert plans == [("failed",)] * 2
        assert calls == [("plan", "error")] * 2
        assert "Traceback" not in server.log
