"""Hostile requests against a served HelmDash, for ten minutes or as long as FUZZ_SECONDS says.

Three kinds take turns: bodies of every chat format and of the API that are mutated, nested and cut;
every operation of the OpenAPI with values that its schema does not want; and raw bytes on sockets.
What must never be: a 500, an answer that takes longer than the patience, an unreadable answer, a
status that the OpenAPI does not name, a server that answers no more, an accepted call that is not
recorded. Each find is printed with the request that leads to it; FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.gateways import OWN, Ground, ground
from bench.table import Row
from bench.upstream_stub import FAST

SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
SEED = int(os.environ.get("FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
# The slowest valid request takes less; the machine may be busy.
_PATIENCE_S = 30.0
_MOST_PRINTED = 20
_MESSAGE = {"role": "user", "content": "Say something short."}
_TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
# Each format's endpoint with a body that is good.
_CHATS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "/v1/chat/completions",
        {
            "model": FAST,
            "messages": [_MESSAGE],
            "tools": [{"type": "function", "function": _TOOL}],
            "metadata": {"a": "b"},
            "max_tokens": 9,
        },
    ),
    (
        "/v1/messages",
        {
            "model": FAST,
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be short."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        },
    ),
    (
        f"/v1beta/models/{FAST}:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
            "tools": [{"functionDeclarations": [_TOOL]}],
            "generationConfig": {"maxOutputTokens": 9},
        },
    ),
    ("/api/chat", {"model": FAST, "messages": [_MESSAGE], "stream": False, "options": {}}),
    ("/api/generate", {"model": FAST, "prompt": "Hello", "stream": False}),
    ("/v1/embeddings", {"model": FAST, "input": ["one", "two"]}),
    ("/v1/messages/count_tokens", {"model": FAST, "messages": [_MESSAGE]}),
    ("/api/v1/calls", {"model": FAST, "usage": {"prompt_tokens": 9}, "messages": [_MESSAGE]}),
    ("/api/v1/fit", {"model": FAST, "intent": "look", "catalog": {"packs": [{"name": "a"}]}}),
    ("/api/v1/rank", {"intent": "look", "catalog": {"packs": [{"name": "a"}]}}),
    ("/api/v1/decode", {"raw": 'Here: {"steps": []}', "finish_reason": "stop"}),
    (
        "/api/v1/plan",
        {"model": FAST, "user_intent": "look", "catalog": {"packs": [{"name": "a"}]}},
    ),
    (
        "/api/v1/route",
        {"model": FAST, "user_intent": "look", "catalog": {"packs": [{"name": "a"}]}},
    ),
    ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
)
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1 << 70, -(1 << 63), 1e308, 0.1, "", " ", "\x00", "\ud800"),
    *("\u202e\u0007", "x" * 5_000, "9" * 5_000, [], {}, [[]], [{}], {"": {}}, [None] * 3_000),
    # A long name before many values, and something to be told of.
    {"n" * 100_000: [0] * 3_000, "z": "\x00"},
    *("<think>" * 999, '{"a":' * 999, "data:image/png;base64,AAAA", "http://[", "%00", "\uffff"),
)


@dataclass(slots=True)
class Found:
    """What came of it all."""

    statuses: Counter[str] = field(default_factory=Counter)
    finds: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    slowest: float = 0.0
    slowest_request: str = ""
    requests: int = 0

    def note(self, what: str, method: str, path: str, body: bytes) -> None:
        """A find, with what leads to it."""
        shown = body if len(body) < 1_500 else body[:1_500] + b"... %d bytes" % len(body)
        self.finds.append(f"{what}\n    {method} {path}\n    {shown!r}")
        if len(self.finds) <= _MOST_PRINTED:
            print("FOUND", self.finds[-1], file=sys.stderr, flush=True)


def rows() -> list[Row]:
    """Fuzz, and give one row for each thing that must never be."""
    chance, found = random.Random(SEED), Found()
    print(f"FUZZ_SEED={SEED} FUZZ_SECONDS={SECONDS:g}", file=sys.stderr, flush=True)
    with ground() as place, _client(place) as http:
        operations = list(_operations(http))
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            _body_round(http, chance, found)
            _schema_round(http, chance, found, operations)
            _socket_round(place, chance, found)
        lives = _lives(http)
        lost = _lost(http, found)
        died = place.server.process.poll() is not None
    told = ", ".join(f"{status}: {count}" for status, count in found.statuses.most_common(12))
    return [
        _row(
            "fuzz, finds", f"{len(found.finds)} in {found.requests:,} requests", told, found.finds
        ),
        _row("fuzz, slowest answer", f"{found.slowest:.1f} s", found.slowest_request, []),
        _row("fuzz, calls answered and not recorded", f"{lost} of {len(found.calls):,}", "", lost),
        _row("fuzz, the server still answers", str(lives and not died), "", not lives or died),
    ]


def _row(name: str, figure: str, against: str, bad: object) -> Row:
    return Row(name=name, figure=figure, against=against, ratio=None, goal="none", ok=not bad)


def _client(place: Ground) -> httpx.Client:
    own = place.target(OWN)
    return httpx.Client(
        base_url=place.server.base_url,
        headers=dict(own.headers),
        timeout=_PATIENCE_S,
        trust_env=False,
    )


# --- bodies


def _body_round(http: httpx.Client, chance: random.Random, found: Found) -> None:
    path, good = chance.choice(_CHATS)
    body: Any = copy.deepcopy(good)
    if "stream" not in good and chance.random() < 0.2:
        body["stream"] = True
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        body = _mutated(body, chance)
    data = _written(body, chance)
    if chance.random() < 0.2:
        data = _broken(data, chance)
    _ask(http, found, "POST", path, data, known=None)


def _mutated(value: Any, chance: random.Random) -> Any:
    """The value with one place of it made odd, doubled, dropped or nested."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        match chance.randrange(6):
            case 0:
                value.pop(name)
            case 1:
                value[chance.choice(("", "\x00", "x" * 300, "stream", "n", "tools"))] = value[name]
            case _:
                value[name] = _mutated(value[name], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        if chance.random() < 0.15:
            return value * chance.choice((0, 2, 300))
        value[at] = _mutated(value[at], chance)
        return value
    if chance.random() < 0.3:
        return _nested(value, chance)
    return copy.deepcopy(chance.choice(_ODD))


def _nested(value: Any, chance: random.Random) -> Any:
    """The value so deep that readers differ: around 32, 254, 1,000 levels, and far beyond."""
    kind = chance.randrange(3)
    for level in range(chance.choice((2, 30, 33, 130, 253, 256, 400, 990))):
        value = [value] if kind == 0 or (kind == 2 and level % 2) else {"a": value}
    return value


def _written(body: Any, chance: random.Random) -> bytes:
    with contextlib.suppress(RecursionError):
        text = json.dumps(body, ensure_ascii=chance.random() < 0.5)
        return text.encode("utf-8", "surrogatepass")
    return b"[" * 100_000


def _broken(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 2:
            return data[:at] + b"[" * 200_000
        case 3:
            return data[:at] + data
        case _:
            return b"\xef\xbb\xbf" + data


# --- the OpenAPI


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    path: str
    query: tuple[str, ...]
    statuses: frozenset[str]


def _operations(http: httpx.Client) -> Iterator[_Operation]:
    document = http.get("/api/v1/openapi.json").raise_for_status().json()
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if method in ("get", "post", "put", "patch", "delete"):
                given = told.get("parameters", [])
                yield _Operation(
                    method.upper(),
                    path,
                    tuple(p["name"] for p in given if p.get("in") == "query"),
                    frozenset(told["responses"]),
                )


def _schema_round(
    http: httpx.Client, chance: random.Random, found: Found, operations: list[_Operation]
) -> None:
    operation = chance.choice(operations)
    path = operation.path
    while "{" in path:
        head, _, rest = path.partition("{")
        path = head + chance.choice(("1", "x", "demo", "%00", "a.b", "-1", "é", "9" * 40))
        path += rest.partition("}")[2]
    names = [n for n in (*operation.query, "nothing") if chance.random() < 0.3]
    query = "&".join(
        f"{n}={chance.choice(('1', '-1', '', 'x', '%00', '2026', '[]'))}" for n in names
    )
    path = f"{path}?{query}" if query else path
    body = b""
    if operation.method not in ("GET", "DELETE"):
        good = next((b for p, b in _CHATS if p == operation.path), {"name": "x", "content": "y"})
        body = _written(_mutated(copy.deepcopy(good), chance), chance)
    _ask(http, found, operation.method, path, body, known=operation.statuses)


def _ask(
    http: httpx.Client,
    found: Found,
    method: str,
    path: str,
    body: bytes,
    *,
    known: frozenset[str] | None,
) -> None:
    """Send one request, and note what must not be. known: the statuses that are documented."""
    found.requests += 1
    began = time.monotonic()
    headers = {"content-type": "application/json"} if body else {}
    if path == "/mcp":
        headers["accept"] = "application/json, text/event-stream"
    try:
        answer = http.request(method, path, content=body, headers=headers)
    except httpx.HTTPError as error:
        found.note(f"no answer: {type(error).__name__} {error}", method, path, body)
        return
    if (taken := time.monotonic() - began) > found.slowest:
        found.slowest = taken
        found.slowest_request = f"{method} {path.partition('?')[0]}, {len(body):,} bytes"
    found.statuses[str(answer.status_code)] += 1
    if answer.status_code == 500:
        found.note(f"500: {answer.text[:300]}", method, path, body)
    if known is not None and str(answer.status_code) not in known:
        found.note(f"undocumented status {answer.status_code}", method, path, body)
    if "json" in answer.headers.get("content-type", "") and answer.content:
        try:
            told = answer.json()
        except ValueError:
            if "ndjson" not in answer.headers["content-type"]:
                found.note("an answer that is no JSON", method, path, body)
            told = None
        is_report = (method, path) == ("POST", "/api/v1/calls")
        if is_report and answer.status_code in (200, 201) and isinstance(told, dict):
            found.calls.add(told["id"])
    call = answer.headers.get("x-helmdash-call-id")
    if call is not None:
        found.calls.add(call)


# --- sockets


def _socket_round(place: Ground, chance: random.Random, found: Found) -> None:
    """Raw bytes: what comes back is HTTP or nothing, and comes in time."""
    found.requests += 1
    key = place.server.headers["Authorization"]
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\n".encode()
    body = json.dumps(_CHATS[0][1]).encode()
    sent = chance.choice(
        (
            head + b"content-length: %d\r\n\r\n" % (len(body) + 5) + body,
            head + b"content-length: -1\r\n\r\n" + body,
            head + b"content-length: 5\r\ncontent-length: 6\r\n\r\n" + body,
            head + b"transfer-encoding: chunked\r\n\r\nZZ\r\n" + body,
            head + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n" + body,
            head + b"upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
            head + b"x: " + b"y" * chance.choice((9_000, 70_000, 300_000)) + b"\r\n\r\n",
            head + b"expect: 100-continue\r\ncontent-length: 3\r\n\r\n{}",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00" + chance.randbytes(200),
            chance.randbytes(500) + b"\r\n\r\n",
            _broken(head + b"content-length: %d\r\n\r\n" % len(body) + body, chance)[:100_000],
        )
    )
    try:
        with socket.create_connection(("127.0.0.1", place.server.port), timeout=2) as connection:
            connection.sendall(sent)
            if chance.random() < 0.7:
                connection.shutdown(socket.SHUT_WR)
            back = connection.recv(65_536)
    except TimeoutError:
        found.statuses["silence"] += 1  # it waits for the rest, as it may for a minute
        return
    except OSError:
        found.statuses["reset"] += 1
        return
    found.statuses[back[9:12].decode("latin-1") if back else "closed"] += 1
    if back and not back.startswith(b"HTTP/1."):
        found.note(f"no HTTP: {back[:80]!r}", "RAW", "", sent)
    if back[9:12] == b"500":
        found.note(f"500: {back[:300]!r}", "RAW", "", sent)


# --- afterwards


def _lives(http: httpx.Client) -> bool:
    answer = http.post("/v1/chat/completions", json={"model": FAST, "messages": [_MESSAGE]})
    return answer.status_code == 200 and http.get("/readyz").status_code == 200


def _lost(http: httpx.Client, found: Found) -> int:
    """How many of the calls that were answered have no record, ten seconds later at most."""
    missing, ends = set(found.calls), time.monotonic() + 10.0
    while missing and time.monotonic() < ends:
        missing = {c for c in missing if http.get(f"/api/v1/calls/{c}").status_code != 200}
    for call in sorted(missing)[:_MOST_PRINTED]:
        print("LOST", call, file=sys.stderr)
    return len(missing)
