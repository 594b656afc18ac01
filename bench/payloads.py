"""Calls as programs report them, of a known size: input of the recording benchmarks."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

# The size of one recorded call in the peers' measurements (spec: performance).
CALL_BYTES = 4700
BATCH_CALLS = 512

_MODELS = ("openai/gpt-4o", "anthropic/claude-sonnet-4", "google/gemini-2.5-pro", "ollama/llama3")
_SYLLABLES = "ba ce di fo gu ka le mi no pu ra se ti vo zu shi tra gle ment ing er st".split()


def calls(*, count: int, run: str, per_conversation: int = 40) -> Iterator[dict[str, Any]]:
    """Calls of about 4.7 kB as `POST /calls` takes them, in conversations that take turns.

    Each carries a system message that all share, a question and a tool result of its own, and an
    answer. `run` begins every id and seeds every text, so that two runs share neither.
    """
    chance = random.Random(run)
    conversations = max(1, count // per_conversation)
    for number in range(count):
        yield _call(chance, f"{run}-{number}", f"{run}-talk-{number % conversations}", number)


def batches(rows: list[dict[str, Any]], size: int = BATCH_CALLS) -> list[bytes]:
    """The bodies of `POST /calls/batch`, encoded before any clock runs."""
    return [
        json.dumps({"calls": rows[start : start + size]}, separators=(",", ":")).encode()
        for start in range(0, len(rows), size)
    ]


def _call(chance: random.Random, name: str, conversation: str, number: int) -> dict[str, Any]:
    prompt = chance.randint(2_000, 140_000)
    call: dict[str, Any] = {
        "id": name,
        "conversation": conversation,
        "model": _MODELS[number % len(_MODELS)],
        "provider": _MODELS[number % len(_MODELS)].split("/")[0],
        "pack": f"pack-{number % 12}",
        "purpose": "chat",
        "correlation_id": f"trace-{number // 3}",
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": chance.randint(20, 900),
            "total_tokens": prompt + 500,
            "cached_tokens": prompt // 2,
        },
        "finish_reason": "stop",
        "http_status": 200,
        "latency_ms": chance.randint(300, 20_000),
        "ttft_ms": chance.randint(80, 900),
        "metadata": {"release": "2026.11", "region": "eu-1", "step": number % 7},
        "messages": [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": _text(chance, 900)},
            {"role": "tool", "tool_call_id": f"t{number}", "content": _text(chance, 1500)},
        ],
        "content": "",
    }
    missing = CALL_BYTES - len(json.dumps(call, separators=(",", ":")))
    call["content"] = _text(chance, missing)
    return call


def _text(chance: random.Random, length: int) -> str:
    """Words that compress about as well as prose does."""
    words: list[str] = []
    size = 0
    while size < length:
        word = "".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4)))
        words.append(word)
        size += len(word) + 1
    return " ".join(words)[:length]


_SYSTEM = _text(random.Random(0), 1100)
