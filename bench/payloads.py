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
# Calls of one conversation in `grown_calls`, and conversations that take turns.
TURNS = 6
_SIDE_BY_SIDE = 8
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


def grown_calls(count: int, run: str, size: int) -> Iterator[dict[str, Any]]:
    """Calls of `size` bytes on average, as chats grow: each resends the messages before it.

    A conversation has TURNS calls, and takes turns with others; `run` begins every id and text.
    """
    chance = random.Random(run)
    pool = _text(chance, 50_000)
    # The system message, and two more with each turn.
    unit = max(20, (size - 700) // (TURNS + 2))
    told: dict[int, list[dict[str, Any]]] = {}
    for number in range(count):
        turn, talk = (number // _SIDE_BY_SIDE) % TURNS, number // (_SIDE_BY_SIDE * TURNS)
        place = talk * _SIDE_BY_SIDE + number % _SIDE_BY_SIDE
        messages = told.pop(place, None) or [{"role": "system", "content": _SYSTEM[:unit]}]
        messages.append({"role": "user", "content": f"{run}-{number} {_cut(chance, pool, unit)}"})
        reply = _cut(chance, pool, unit)
        yield _grown(chance, f"{run}-{number}", f"{run}-talk-{place}", messages, reply)
        if turn + 1 < TURNS:
            told[place] = [*messages, {"role": "assistant", "content": reply}]


def _cut(chance: random.Random, pool: str, length: int) -> str:
    start = chance.randrange(len(pool) - length)
    return pool[start : start + length]


def _grown(
    chance: random.Random,
    name: str,
    conversation: str,
    messages: list[dict[str, Any]],
    reply: str,
) -> dict[str, Any]:
    prompt = chance.randint(2_000, 90_000)
    completion = chance.randint(20, 900)
    return {
        "id": name,
        "conversation": conversation,
        "model": _MODELS[prompt % len(_MODELS)],
        "pack": f"pack-{prompt % 12}",
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
        "finish_reason": "stop",
        "http_status": 200,
        "latency_ms": chance.randint(300, 20_000),
        "metadata": {"release": "2026.11", "region": "eu-1"},
        "messages": messages,
        "content": reply,
    }


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
