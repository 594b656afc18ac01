"""Whether a clear follows a guidance: a fleet of agents in small windows, through the gateway.

Each agent only ever calls a tool, and sends its whole history. Its results are a share of the
window, the same each time or of any size up to twice that. The model refuses what does not fit. A
clear counts as announced when the round that it ends had a guidance (a `guide` or a recorded
prompt) before it. Budgets have the default lines.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.table import Row
from tests.support.server import Served
from tests.support.upstreams.http import Exchange, Server

WINDOWS = (16_000, 40_000, 111_000)
# Of the window, for each result of a tool.
GROWTH = (0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30)
CLEARS = 4
LEAST_SHARE = 0.9
_BYTES_PER_TOKEN = 4
_MOST_CALLS = 400


def rows() -> list[Row]:
    """Measure; takes about two minutes."""
    with _ground() as served:
        return [_row(served, window) for window in WINDOWS]


def _row(served: Served, window: int) -> Row:
    announced: list[bool] = []
    guided: list[bool] = []
    worst = ""
    least = 1.0
    for growth in GROWTH:
        for is_steady in (True, False):
            agent = _Agent(served, window, growth, is_steady=is_steady)
            found = agent.run()
            announced += [any(before) for before in found]
            guided += ["guide" in before for before in found]
            share = sum(map(any, found)) / max(len(found), 1)
            if share < least:
                least = share
                worst = f"{growth:.0%} {'steady' if is_steady else 'uneven'}: {share:.0%}"
    share = sum(announced) / len(announced)
    return Row(
        name=f"clears announced, window {window:,}",
        figure=f"{share:.0%} of {len(announced)} ({sum(guided) / len(guided):.0%} by a guide)",
        against=f"worst {worst}" if worst else "all growth rates alike",
        ratio=None,
        goal=f">= {LEAST_SHARE:.0%}",
        ok=share >= LEAST_SHARE,
    )


class _Agent:
    def __init__(self, served: Served, window: int, growth: float, *, is_steady: bool) -> None:
        url = urlsplit(served.base_url)
        assert url.hostname is not None
        self._http = http.client.HTTPConnection(url.hostname, url.port or 80)
        self._served = served
        self._model = f"openai/window-{window}"
        self._bytes = window * growth * _BYTES_PER_TOKEN
        self._is_steady = is_steady
        self._chance = random.Random(f"{window} {growth} {is_steady}")
        self._name = f"fleet-{window}-{growth}-{is_steady}"
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent. " * 20},
            {"role": "user", "content": f"Work on. {self._name}"},
        ]

    def run(self) -> list[list[str]]:
        """What was done before each clear, in its round."""
        rounds: list[list[str]] = []
        told: list[str] = []
        for _ in range(_MOST_CALLS):
            action = self._turn()
            if action == "clear":
                rounds.append(told)
                told = []
                if len(rounds) == CLEARS:
                    break
            elif action != "none":
                told.append(action)
        return rounds

    def _turn(self) -> str:
        body = json.dumps({"model": self._model, "messages": self._messages})
        headers = {
            **self._served.headers,
            "content-type": "application/json",
            "x-helmdash-remediation": "on",
            "x-helmdash-conversation": self._name,
        }
        self._http.request("POST", "/v1/chat/completions", body, headers)
        answer = self._http.getresponse()
        data = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(str(data)[:500])
        message = data["choices"][0]["message"]
        share = 1.0 if self._is_steady else self._chance.uniform(0.0, 2.0)
        result = "word " * int(self._bytes * share / 5)
        call = message["tool_calls"][0]["id"]
        self._messages += [message, {"role": "tool", "tool_call_id": call, "content": result}]
        return str(answer.getheader("x-helmdash-remediation"))


class _Model:
    def __init__(self) -> None:
        self.server = Server(self._handle)
        self._count = 0

    async def _handle(self, exchange: Exchange) -> None:
        if exchange.seen.method != "POST":
            await exchange.reply(200, b'{"object":"list","data":[]}')
            return
        body = exchange.seen.json
        window = int(body["model"].rpartition("-")[2])
        tokens = len(exchange.seen.body) // _BYTES_PER_TOKEN
        await asyncio.sleep(0)
        if tokens > window:
            words = f"This model's maximum context length is {window} tokens. You sent {tokens}."
            error = {"message": words, "code": "context_length_exceeded"}
            await exchange.reply(400, json.dumps({"error": error}).encode())
            return
        self._count += 1
        function = {"name": "look", "arguments": json.dumps({"at": self._count})}
        call = {"id": f"call_{self._count}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reply = {
            "id": f"chatcmpl-{self._count}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {
                "prompt_tokens": tokens,
                "completion_tokens": 20,
                "total_tokens": tokens + 20,
            },
        }
        await exchange.reply(200, json.dumps(reply).encode())


@contextmanager
def _ground() -> Iterator[Served]:
    with ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="helmdash-bench-")))
        os.environ["HELMDASH_DATA_DIR"] = str(parent)
        model = _Model()
        model.server.start()
        stack.callback(model.server.stop)
        own = parent / "own"
        own.mkdir()
        served = Served(
            data_dir=own,
            database_url="",
            settings={
                "OPENAI_API_KEY": "bench",
                "OPENAI_BASE_URL": f"{model.server.root_url}/v1",
                "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
            },
        )
        served.start()
        stack.callback(served.kill)
        for window in WINDOWS:
            _budget(served, window)
        time.sleep(1.2)  # what holds for a key is at most 0.9 s old
        yield served


def _budget(served: Served, window: int) -> None:
    url = urlsplit(served.base_url)
    assert url.hostname is not None
    row = {
        "key": f"openai/window-{window}",
        "input_tokens": window,
        "output_tokens": 1_000,
        "tier": "A",
        "context_length": window,
        "evidence": "the simulated model of the benchmark",
    }
    api = http.client.HTTPConnection(url.hostname, url.port or 80)
    headers = {**served.headers, "content-type": "application/json"}
    api.request("POST", "/api/v1/budgets", json.dumps(row), headers)
    answer = api.getresponse()
    if answer.status != 201:
        raise RuntimeError(answer.read().decode(errors="replace"))
