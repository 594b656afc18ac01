"""The recording floor: raw ASGI that stores calls as one narrow row each, in groups, and no more.

`POST /calls` takes one, `POST /calls/batch` many; both are answered when their group is committed,
with the durability of HelmDash's own SQLite file. BENCH_DATABASE is where the file goes.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from typing import Any

import orjson

from bench.floors.passing import Receive, Scope, Send, finish, read_body, start

_PRAGMAS = (
    "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA wal_autocheckpoint=4000;"
)
_TABLE = """
CREATE TABLE IF NOT EXISTS call (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, conversation TEXT, model TEXT, started_at TEXT,
    prompt_tokens INTEGER, completion_tokens INTEGER, finish_reason TEXT, body TEXT
);
CREATE INDEX IF NOT EXISTS by_time ON call (started_at, id);
CREATE INDEX IF NOT EXISTS by_conversation ON call (conversation, id);
CREATE INDEX IF NOT EXISTS by_model ON call (model, started_at);
"""
_INSERT = (
    "INSERT INTO call (name, conversation, model, started_at, prompt_tokens, completion_tokens,"
    " finish_reason, body) VALUES (?, ?, ?, datetime('now'), ?, ?, ?, ?)"
)
_JSON = {"content-type": "application/json"}

_Group = tuple[list[tuple[Any, ...]], "asyncio.Future[None]"]
_waiting: queue.SimpleQueue[_Group] = queue.SimpleQueue()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one report once it is stored."""
    if scope["method"] == "GET":  # the bench asks whether it is up
        await start(send, 200, {})
        await finish(send)
        return
    body = orjson.loads(await read_body(receive))
    given = body["calls"] if scope["path"].endswith("/batch") else [body]
    await store(given)
    answer = orjson.dumps({"ids": [call["id"] for call in given]})
    await start(send, 200, {**_JSON, "content-length": str(len(answer))})
    await finish(send, answer)


def store(calls: list[dict[str, Any]]) -> asyncio.Future[None]:
    """Have calls stored with whatever else waits; done when their group is committed."""
    stored = asyncio.get_running_loop().create_future()
    _waiting.put(([_row(call) for call in calls], stored))
    return stored


def _row(call: dict[str, Any]) -> tuple[Any, ...]:
    usage = call["usage"]
    return (
        call["id"],
        call["conversation"],
        call["model"],
        usage["prompt_tokens"],
        usage["completion_tokens"],
        call["finish_reason"],
        orjson.dumps(call).decode(),
    )


def _write() -> None:
    """Store whatever waits in one transaction, and tell who waits for it."""
    database = sqlite3.connect(os.environ["BENCH_DATABASE"], isolation_level=None)
    database.executescript(_PRAGMAS + _TABLE)
    while True:
        groups = [_waiting.get()]
        while not _waiting.empty():
            groups.append(_waiting.get())
        database.execute("BEGIN IMMEDIATE")
        database.executemany(_INSERT, [row for rows, _ in groups for row in rows])
        database.execute("COMMIT")
        groups[0][1].get_loop().call_soon_threadsafe(_tell, [stored for _, stored in groups])


def _tell(stored: list[asyncio.Future[None]]) -> None:
    for future in stored:
        if not future.done():
            future.set_result(None)


threading.Thread(target=_write, name="floor-writer", daemon=True).start()
