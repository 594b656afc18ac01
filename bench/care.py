"""What care of conversations adds to a call of the gateway: on and off take turns, call by call.

One client, SQLite, an upstream that answers at once; each agent loop sends its whole history, as
agents do. Two kinds of loop: one far below its caution line, where nothing is to be done, and one
in caution, where guidance is due. Both with a name and without.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.table import Row
from tests.support.processes import free_port, kill, spawn_python, wait_for_http
from tests.support.server import Served

TURNS = 100
# The stub reports 160 tokens for every call: far below one line, above the other.
_HEALTHY_LINE, _CAUTION_LINE = 100_000, 100
MOST_MS = 5.0


def rows() -> list[Row]:
    """Measure; takes about half a minute."""
    with _ground() as served:
        return [
            _row(served, model, is_named=is_named, think_s=think_s)
            for model in ("healthy", "caution")
            for is_named, think_s in ((True, 0.0), (False, 0.0), (True, 0.03))
        ]


def _row(served: Served, model: str, *, is_named: bool, think_s: float) -> Row:
    mark = f"{model}-{is_named}-{think_s}"
    loops = {
        wish: _Loop(served, f"openai/{model}", wish, f"{mark}-{wish}" if is_named else "")
        for wish in ("on", "off")
    }
    taken: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(TURNS):
        for wish in ("on", "off") if turn % 2 else ("off", "on"):
            time.sleep(think_s)
            taken[wish].append(loops[wish].turn(turn))
    on, off = (statistics.median(taken[wish][10:]) for wish in ("on", "off"))
    p95 = statistics.quantiles(taken["on"][10:], n=20)[-1]
    pause = f", {think_s * 1000:.0f} ms between calls" if think_s else ""
    return Row(
        name=f"care adds, {model}, {'named' if is_named else 'unnamed'}{pause}",
        figure=f"{on - off:.2f} ms (p95 of on {p95:.2f} ms)",
        against=f"on {on:.2f} ms, off {off:.2f} ms",
        ratio=on / off,
        goal=f"<= {MOST_MS:g} ms",
        ok=on - off <= MOST_MS,
    )


class _Loop:
    """An agent loop: each turn one call of a tool and its result are added to the history."""

    def __init__(self, served: Served, model: str, wish: str, name: str) -> None:
        url = urlsplit(served.base_url)
        assert url.hostname is not None
        self._http = http.client.HTTPConnection(url.hostname, url.port or 80)
        self._headers = {
            **served.headers,
            "content-type": "application/json",
            "x-helmdash-remediation": wish,
            **({"x-helmdash-conversation": name} if name else {}),
        }
        self._model = model
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": f"Read all the files. {model} {wish} {name}"},
        ]

    def turn(self, number: int) -> float:
        """The milliseconds of one call."""
        body = json.dumps({"model": self._model, "messages": self._messages})
        began = time.perf_counter()
        self._http.request("POST", "/v1/chat/completions", body, self._headers)
        answer = self._http.getresponse()
        data = answer.read()
        taken = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            raise RuntimeError(data[:500].decode(errors="replace"))
        said = json.loads(data)["choices"][0]["message"]["content"]
        self._messages += [
            {"role": "assistant", "content": said},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"content {number}"},
        ]
        return taken


@contextmanager
def _ground() -> Iterator[Served]:
    with ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="helmdash-bench-")))
        os.environ["HELMDASH_DATA_DIR"] = str(parent)
        port, log = free_port(), parent / "upstream.log"
        upstream = spawn_python("-m", "bench.upstream_stub", str(port), log=log)
        stack.callback(kill, upstream)
        wait_for_http(f"http://127.0.0.1:{port}/v1/models", process=upstream, log=log)
        own = parent / "own"
        own.mkdir()
        served = Served(
            data_dir=own,
            database_url="",
            settings={
                "OPENAI_API_KEY": "bench",
                "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
                "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
            },
        )
        served.start()
        stack.callback(served.kill)
        _furnish(served)
        yield served


def _furnish(served: Served) -> None:
    url = urlsplit(served.base_url)
    assert url.hostname is not None
    for key, optimal in (
        ("openai/healthy", _HEALTHY_LINE),
        ("openai/caution", _CAUTION_LINE),
    ):
        row = {
            "key": key,
            "input_tokens": 200_000,
            "output_tokens": 1_000,
            "tier": "A",
            "context_length": 200_000,
            "optimal_max_tokens": optimal,
            "caution_cadence": 1,
            "evidence": "the stub of the benchmark",
        }
        api = http.client.HTTPConnection(url.hostname, url.port or 80)
        headers = {**served.headers, "content-type": "application/json"}
        api.request("POST", "/api/v1/budgets", json.dumps(row), headers)
        answer = api.getresponse()
        if answer.status != 201:
            raise RuntimeError(answer.read().decode(errors="replace"))
    time.sleep(1.0)  # what holds for a key is at most 0.9 s old
