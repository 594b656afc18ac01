"""A HelmDash with remediation on, in front of a model with a narrow window, and its clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai

from tests.gateway.narrow import WINDOW, Narrow
from tests.support.postgres import closed_database
from tests.support.server import Served

SYSTEM = "You are an agent."
OPTIMAL, CRITICAL = 2_600, 4_000
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
]
# The models of the four providers; "tight" has the default lines, right below its window.
MODELS = {
    "openai": "openai/gpt-narrow",
    "anthropic": "anthropic/claude-narrow",
    "gemini": "gemini/gemini-narrow",
    "ollama": "ollama/llama-narrow",
    "tight": "openai/gpt-tight",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One running HelmDash in front of the narrow model."""

    served: Served
    narrow: Narrow
    http: httpx.Client
    api: httpx.Client

    def furnish(self) -> None:
        """Budgets for the narrow models, and remediation switched on."""
        for name, key in MODELS.items():
            lines = {"optimal_max_tokens": OPTIMAL, "critical_max_tokens": CRITICAL}
            row = {
                "key": key,
                "input_tokens": WINDOW,
                "output_tokens": 1000,
                "tier": "A",
                "context_length": WINDOW,
                "evidence": "the narrow model of the tests",
                **({"optimal_max_tokens": 5_000} if name == "tight" else lines),
            }
            answer = self.api.post("/budgets", json=row)
            assert answer.status_code == 201, answer.text
        self.shell(
            "from helmdash.records.models import Project;"
            "Project.objects.update(remediation=True, payload='full')"
        )
        time.sleep(1.0)  # what holds for a key is at most 0.9 s old

    def shell(self, code: str) -> str:
        """Run code on the server's data."""
        done = self.served.manage("shell", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def sdk(self, **headers: str) -> openai.OpenAI:
        """The official SDK, unmodified."""
        return openai.OpenAI(
            base_url=self.served.base_url + "/v1",
            api_key=self.served.api_key,
            max_retries=0,
            timeout=30,
            default_headers=headers,
        )

    def clear(self, conversation: str) -> None:
        """A fresh start that somebody asks for elsewhere."""
        path = f"/conversations/{conversation}/clear"
        answer = self.api.post(path, json={})
        assert answer.status_code in (200, 201), answer.text

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """Take the database away for the length of the block, and see it found again."""
        database = self.served.data_dir / "helmdash.sqlite3"
        url = self.served.database_url
        with closed_database(url) if url else hidden_file(database):
            yield
        deadline = time.monotonic() + 20
        while self.http.get("/readyz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1.2)  # for a second nobody waits for a database that was silent

    def call(self, call_id: str) -> dict[str, Any]:
        """The record of a call, once it is there."""
        deadline = time.monotonic() + 10
        while (answer := self.api.get(f"/calls/{call_id}")).status_code != 200:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.02)
        found: dict[str, Any] = answer.json()
        return found

    def calls(self, conversation: str, *, count: int = 1) -> list[dict[str, Any]]:
        """A conversation's calls, oldest first, once there are `count`."""
        deadline = time.monotonic() + 10
        while True:
            items: list[dict[str, Any]] = []
            cursor: dict[str, str] = {}
            while True:
                page = self.api.get(
                    "/calls", params={"conversation": conversation, "limit": 500, **cursor}
                ).json()
                items += page["items"]
                if not page.get("next"):
                    break
                cursor = {"cursor": page["next"]}
            if len(items) >= count:
                return sorted(items, key=lambda item: item["generation"])
            assert time.monotonic() < deadline, f"{len(items)} calls, not {count}"
            time.sleep(0.02)


@contextmanager
def hidden_file(path: Path) -> Iterator[None]:
    """The file has another name for the length of the block."""
    away = path.with_suffix(".away")
    path.rename(away)
    try:
        yield
    finally:
        away.rename(path)


@dataclass(slots=True, kw_only=True)
class Agent:
    """An agent loop over the OpenAI SDK that knows nothing of HelmDash."""

    sdk: openai.OpenAI
    model: str
    page_bytes: int = 400
    pages: list[str] = field(default_factory=list)  # served first
    streams: bool = False
    messages: list[dict[str, Any]] = field(
        default_factory=lambda: [{"role": "system", "content": SYSTEM}]
    )
    headers: list[dict[str, str]] = field(default_factory=list)
    generations: int = 0

    def ask(
        self, number: object, *, tools: int = 0, pad: str = "", aside: str = "", most: int = 100
    ) -> str:
        """Ask, run tools until there is an answer, and give it. `aside` is said after a tool.

        Given up after `most` generations.
        """
        self.messages.append({"role": "user", "content": f"ask {number} tools={tools} {pad}"})
        for _ in range(most):
            message = self.generate()
            self.messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                page = (
                    self.pages.pop()
                    if self.pages
                    else f"page {self.generations}: " + "x" * self.page_bytes
                )
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": page})
            if aside:
                self.messages.append({"role": "user", "content": aside})
                aside = ""
        return "given up"

    def generate(self) -> dict[str, Any]:
        """One call of the model; raises what the SDK raises."""
        self.generations += 1
        create: Any = self.sdk.chat.completions.with_raw_response.create
        # What is sent is the same. Given as `messages`, the SDK compares each one to its types:
        # 80 ms of CPU for 240 of them, most of what a long loop takes here.
        raw = create(
            model=self.model,
            messages=[],
            tools=TOOLS,
            stream=self.streams,
            extra_body={"messages": self.messages},
        )
        self.headers.append(dict(raw.headers))
        return _joined(raw.parse()) if self.streams else _whole(raw.parse())


def _whole(answer: Any) -> dict[str, Any]:
    message = answer.choices[0].message
    return dict(message.model_dump(exclude_none=True))


def _joined(chunks: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for chunk in chunks:
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                told = call.model_dump(exclude={"index"})
                message.setdefault("tool_calls", []).append(told)
    return message
