"""A database that hangs, is locked or gone: every face answers within five seconds, and says so.

Real servers: another process holds SQLite's lock, PostgreSQL's tables are locked or its machine
falls silent. Nothing that was acknowledged is lost, and everything goes on afterwards.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.recorder.swallowing import Way
from tests.recording import load
from tests.support import environment
from tests.support.postgres import create_database, drop_database
from tests.support.server import Served

pytestmark = pytest.mark.slow

# What is promised.
PROMISED_SECONDS = 5.0
SOON_SECONDS = 1.5
MCP = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "record_call", "arguments": {"model": "m", "id": "by-mcp"}},
}
MCP_HEADERS = {"accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a request."""

    status: int
    seconds: float
    text: str
    retry_after: str | None


# A name, a method, an address below the server, and a body.
WRITES = (
    ("report", "POST", "/api/v1/calls", load.call("report")),
    ("batch", "POST", "/api/v1/calls/batch", {"calls": [load.call("in-a-batch")]}),
    ("reminder", "POST", "/api/v1/conversations/talk/reminders", {"content": "note"}),
    ("budget", "POST", "/api/v1/budgets", {"key": "x/", "input_tokens": 9, "output_tokens": 9,
                                           "tier": "A", "evidence": "a test"}),
    ("mcp", "POST", "/mcp", MCP),
)  # fmt: skip
READS = (
    ("calls", "GET", "/api/v1/calls", None),
    ("ids", "POST", "/api/v1/calls/reconcile", {"ids": ["a"]}),
)
LIVENESS = (("ready", "GET", "/readyz", None), ("metrics", "GET", "/metrics", None))


def ask(served: Served, *requests: tuple[str, str, str, object]) -> dict[str, Asked]:
    """All of them at once."""

    def one(request: tuple[str, str, str, object]) -> tuple[str, Asked]:
        name, method, path, body = request
        began = time.monotonic()
        answer = httpx.request(
            method,
            served.base_url + path,
            json=body,
            headers={**served.headers, **(MCP_HEADERS if path == "/mcp" else {})},
            timeout=30,
            trust_env=False,
        )
        seconds = time.monotonic() - began
        retry_after = answer.headers.get("retry-after")
        return name, Asked(
            status=answer.status_code, seconds=seconds, text=answer.text, retry_after=retry_after
        )

    with ThreadPoolExecutor(len(requests)) as pool:
        return dict(pool.map(one, requests))


def ask_until_soon(served: Served, request: tuple[str, str, str, object]) -> dict[str, Asked]:
    """Who comes while the recorder looks whether the database is back waits for how that ends; the
    next one is told at once."""
    found = ask(served, request)
    for _ in range(2):
        if max(asked.seconds for asked in found.values()) > SOON_SECONDS:
            found = ask(served, request)
    return found


def assert_all_said_no(found: dict[str, Asked], *, seconds: float = PROMISED_SECONDS) -> None:
    wrong = {
        name: asked
        for name, asked in found.items()
        if asked.seconds > seconds
        or (name == "mcp" and "unavailable" not in asked.text)
        or (name != "mcp" and (asked.status, asked.retry_after) != (503, "5"))
    }
    assert wrong == {}


def assert_all_is_well(served: Served) -> None:
    deadline = time.monotonic() + 30
    while httpx.get(f"{served.base_url}/readyz", timeout=9, trust_env=False).json()["api"] != "ok":
        assert time.monotonic() < deadline, served.log
        time.sleep(0.2)
    ask(served, ("first", "POST", "/api/v1/calls", {"model": "m", "conversation": "talk"}))
    found = ask(served, *WRITES[:3], WRITES[-1], *READS, *LIVENESS)
    assert {name: asked for name, asked in found.items() if asked.status >= 300} == {}, served.log
    assert "helmdash_database_available 1.0" in found["metrics"].text


def assert_liveness_speaks(served: Served, *, is_there: bool) -> dict[str, Asked]:
    found = ask(served, *LIVENESS)
    assert max(asked.seconds for asked in found.values()) < SOON_SECONDS, found
    assert found["metrics"].status == 200
    assert f"helmdash_database_available {float(is_there)}" in found["metrics"].text
    return found


@contextmanager
def locked_file(served: Served) -> Iterator[None]:
    """This process holds SQLite's lock."""
    holder = sqlite3.connect(served.data_dir / "helmdash.sqlite3", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


@contextmanager
def locked_tables(url: str) -> Iterator[None]:
    """Somebody alters the tables that are written to, for a long time."""
    with psycopg.connect(url) as holder:
        holder.execute(
            "LOCK records_call, records_conversation, records_reminder, records_budget,"
            " records_recorderledger IN EXCLUSIVE MODE"
        )
        yield
        holder.rollback()


@pytest.mark.skipif(environment.database() != "sqlite", reason="of SQLite")
def test_while_another_process_holds_sqlites_lock(serve: Callable[..., Served]) -> None:
    served = serve()
    assert_all_is_well(served)

    with locked_file(served):
        first = ask(served, *WRITES)
        again = ask_until_soon(served, WRITES[0])
        reads = ask(served, *READS)
        # It can be read; what the recorder has to write waits.
        assert_liveness_speaks(served, is_there=False)

    assert_all_said_no(first)
    assert_all_said_no(again, seconds=SOON_SECONDS)
    assert {asked.status for asked in reads.values()} == {200}
    assert_all_is_well(served)


@pytest.mark.skipif(environment.database() != "postgres", reason="of PostgreSQL")
def test_while_postgresql_is_locked_silent_or_gone(serve: Callable[..., Served]) -> None:
    url = create_database(os.environ["DATABASE_URL"], f"hanging_{uuid4().hex}")
    way = Way(url)
    served = serve(DATABASE_URL=way.through)
    try:
        assert_all_is_well(served)

        with locked_tables(url):
            locked = ask(served, *WRITES)
        assert_all_said_no(locked)
        assert_all_is_well(served)

        with way.silent():
            silent = ask(served, *WRITES, *READS)
            again = ask(served, *WRITES, *READS)
            told = assert_liveness_speaks(served, is_there=False)
        assert_all_said_no(silent)
        assert_all_said_no(again, seconds=SOON_SECONDS)
        assert told["ready"].status == 503
        assert '"gateway": "ok for keys' in told["ready"].text
        assert_all_is_well(served)

        with way.cut():
            gone = ask(served, *WRITES, *READS)
            assert_liveness_speaks(served, is_there=False)
        assert_all_said_no(gone)
        assert_all_is_well(served)
    finally:
        served.stop()
        way.close()
        drop_database(url)
