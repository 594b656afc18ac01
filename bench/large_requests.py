"""Small requests while others send large ones: how long does a small one take?

One worker, a key, recording on, SQLite, an upstream that answers at once. Four connections ask
small questions one after the other; meanwhile one client, or twelve, send large valid requests over
and over. The same small load runs before each, alone, to compare: others may use the machine, too.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.gateways import OWN, Ground, ground
from bench.table import Row
from bench.upstream_stub import FAST

SECONDS = 6.0
CONCURRENCY = 4
# What a small request may wait while large ones are worked on.
MOST_P99_MS = 50.0
STORED = "stored"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of large request."""

    name: str
    path: str
    body: bytes
    method: str = "POST"
    key: str = ""
    """Empty: the one that small requests have."""


@dataclass(slots=True)
class Tally:
    """What became of the large requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0


def rows() -> list[Row]:
    """Measure everything; takes about five minutes."""
    with ground() as found:
        prepare(found)
        made = found.server.manage("apikey", "create", "--name", "large", "--scopes", "admin")
        if made.returncode:
            raise RuntimeError(made.stderr)
        return [row for kind in kinds(made.stdout.strip()) for row in _measure(found, kind)]


def prepare(found: Ground) -> None:
    """Store the catalog that requests name, and warm up every part."""
    file = found.place.data_dir.parent / "catalog.json"
    file.write_bytes(_catalog(10_000))
    done = found.server.manage("import_catalog", str(file), "--name", STORED)
    if done.returncode:
        raise RuntimeError(done.stderr)
    _small(found, 1.0)


def kinds(admin_key: str) -> list[Kind]:
    """The large requests, each below the limit for bodies (8 MiB); as many as may be in one, and
    more, which is refused; some that are large by what is in them alone, and small ones that name
    something large."""
    named = {"intent": _INTENT, "catalog_name": STORED}
    return [
        Kind("POST /fit, stored 10,000", "/api/v1/fit", _packed({"model": FAST, **named})),
        Kind("POST /rank, stored 10,000", "/api/v1/rank", _packed(named)),
        Kind("GET /catalogs, stored 10,000", f"/api/v1/catalogs/{STORED}", b"", "GET"),
        Kind("chat, 200,000 messages", "/v1/chat/completions", _chat(200_000)),
        Kind("chat, 50,000 messages", "/v1/chat/completions", _chat(50_000)),
        Kind("chat, 20 messages of 400 kB", "/v1/chat/completions", _chat(20, "word " * 80_000)),
        Kind("chat, 1,500 messages", "/v1/chat/completions", _chat(1_500)),
        Kind("POST /calls, 200,000 messages", "/api/v1/calls", _call(200_000)),
        Kind("POST /calls, 10,000 messages", "/api/v1/calls", _call(10_000)),
        Kind("POST /calls/batch, 500 of 100", "/api/v1/calls/batch", _batch(500, 100)),
        Kind("POST /fit, 10,000 entries", "/api/v1/fit", _fit(10_000)),
        Kind("POST /rank, 10,000 entries", "/api/v1/rank", _rank(10_000)),
        Kind("POST /assemble, 10,000 chunks", "/api/v1/assemble", _assemble(10_000)),
        Kind("PUT /catalogs, 10,000", "/api/v1/catalogs/large", _catalog(10_000), "PUT", admin_key),
        Kind("POST /decode, 6 MiB of tags", "/api/v1/decode", _decode("<think>", 6 * _MIB)),
        Kind("POST /decode, 1 MB of braces", "/api/v1/decode", _decode("{", 1_000_000)),
        Kind("embeddings, 500,000 tokens", "/v1/embeddings", _embeddings()),
        Kind("chat, 340,000 empty lists", "/v1/chat/completions", _extra([[]] * 340_000)),
    ]


def _measure(found: Ground, kind: Kind) -> Iterator[Row]:
    for clients in (1, 12):
        alone = _small(found, 2.0)
        with _large(found, kind, clients) as tally:
            time.sleep(0.3)
            beside = _small(found, SECONDS)
        said = ", ".join(f"{status}: {count}" for status, count in sorted(tally.statuses.items()))
        p99 = beside["p99"]
        yield Row(
            name=f"small beside {clients} x {kind.name}",
            figure=f"p99 {p99:.1f} ms, p50 {beside['p50']:.1f}",
            against=f"alone p99 {alone['p99']:.1f} ms; {said}; <= {tally.slowest:.1f} s",
            ratio=p99 / alone["p99"],
            goal=f"< {MOST_P99_MS:g} ms",
            ok=p99 < MOST_P99_MS,
        )


def _small(found: Ground, seconds: float) -> dict[str, float]:
    own = found.target(OWN)
    told = found.load.ask(
        url=own.url,
        headers=own.headers,
        model=FAST,
        stream=False,
        seconds=seconds,
        concurrency=CONCURRENCY,
    )
    if told["errors"] or not told["whole_ms"]:
        raise RuntimeError(f"small requests failed: {told['errors']}")
    spread: dict[str, float] = told["whole_ms"]
    return spread


@contextmanager
def _large(found: Ground, kind: Kind, clients: int) -> Iterator[Tally]:
    tally, over = Tally(), threading.Event()
    threads = [
        threading.Thread(target=_send_on, args=(found, kind, tally, over), daemon=True)
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _send_on(found: Ground, kind: Kind, tally: Tally, over: threading.Event) -> None:
    while not over.is_set():
        began = time.monotonic()
        status = _send(found, kind)
        tally.slowest = max(tally.slowest, time.monotonic() - began)
        tally.statuses[status] += 1
        if status in (0, 429, 503):
            over.wait(1.0)  # as it says itself


def _send(found: Ground, kind: Kind) -> int:
    request = urllib.request.Request(
        found.server.base_url + kind.path,
        data=kind.body or None,
        headers={
            **({"Authorization": f"Bearer {kind.key}"} if kind.key else found.server.headers),
            "Content-Type": "application/json",
        },
        method=kind.method,
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def _packed(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _messages(count: int, text: str = "x") -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": text} for number in range(count)]


def _chat(count: int, text: str = "x") -> bytes:
    return _packed({"model": FAST, "messages": _messages(count - 1, text) + _messages(1, "End?")})


def _call(count: int) -> bytes:
    return _packed({"model": FAST, "usage": {"prompt_tokens": 9}, "messages": _messages(count)})


def _batch(count: int, messages: int) -> bytes:
    call = {"model": FAST, "usage": {"prompt_tokens": 9}, "messages": _messages(messages)}
    return _packed({"calls": [call] * count})


def _entries(count: int) -> list[dict[str, object]]:
    words = "read write list send find close open merge draft label archive export".split()
    nouns = "mail invoice ticket branch calendar report user bucket image channel".split()
    return [
        {
            "name": f"{words[n % 12]}_{nouns[n // 12 % 10]}_{n}",
            "description": f"{words[n % 12].title()} one {nouns[n // 12 % 10]} of group {n}. "
            f"It takes the id and says what became of it in {words[n * 7 % 12]} order.",
            "metadata": {"accepts": ["id"], "produces": [nouns[n % 10]]},
        }
        for n in range(count)
    ]


def _packs(count: int) -> dict[str, object]:
    return {"packs": _entries(count)}


_INTENT = "find the invoice of last month and send it to the user as a report"


def _fit(count: int) -> bytes:
    return _packed({"model": FAST, "intent": _INTENT, "catalog": _packs(count)})


def _rank(count: int) -> bytes:
    return _packed({"intent": _INTENT, "catalog": _packs(count)})


def _catalog(count: int) -> bytes:
    return _packed(_packs(count))


def _assemble(count: int) -> bytes:
    chunks = [
        {
            "id": f"c{n}",
            "text": f"Paragraph {n} tells of invoices and reports. " * 4,
            "source": f"file-{n % 100}",
            "score": 0.5,
        }
        for n in range(count)
    ]
    return _packed({"model": FAST, "system": "", "user_query": _INTENT, "chunks": chunks})


def _decode(text: str, size: int) -> bytes:
    return _packed({"raw": text * (size // len(text))})


def _embeddings() -> bytes:
    return _packed({"model": FAST, "input": [[1] * 10_000] * 50})


def _extra(value: object) -> bytes:
    return _packed({"model": FAST, "messages": _messages(1), "metadata": value})
