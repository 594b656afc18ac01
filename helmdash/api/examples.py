"""The examples of the OpenAPI. tests/api sends every body here and expects it to be accepted."""

from __future__ import annotations

CALL: dict[str, object] = {
    "id": "run-42-step-3",
    "conversation": "run-42",
    "model": "openai/gpt-4o",
    "pack": "web.scrape",
    "usage": {"prompt_tokens": 18250, "completion_tokens": 412, "cached_tokens": 16000},
    "finish_reason": "stop",
    "raw_content_len": 1630,
    "latency_ms": 2140,
    "started_at": "2026-01-31T12:00:00Z",
}
ANTHROPIC_CALL: dict[str, object] = {
    "conversation": "run-43",
    "model": "anthropic/claude-sonnet-4",
    "usage": {
        "input_tokens": 1200,
        "cache_creation_input_tokens": 3000,
        "cache_read_input_tokens": 90000,
        "output_tokens": 640,
    },
    "finish_reason": "end_turn",
}
FAILED_CALL: dict[str, object] = {
    "conversation": "run-44",
    "model": "openrouter/auto",
    "purpose": "plan",
    "usage": None,
    "status": "error",
    "http_status": 429,
    "error_message": "Rate limit exceeded",
}
BATCH: dict[str, object] = {"calls": [CALL, FAILED_CALL]}
RECONCILE: dict[str, object] = {"ids": ["run-42-step-3", "run-42-step-4"]}

CATALOG: dict[str, object] = {
    "packs": [
        {
            "name": "web.scrape",
            "description": "Read a page and give its text.",
            "metadata": {"accepts": ["url"], "produces": ["text"], "intent_keywords": ["scrape"]},
        },
        {"name": "doc.summarize", "description": "Summarize a text."},
    ],
    "pipelines": [
        {
            "id": "digest",
            "name": "Page digest",
            "description": "Read a page and summarize it.",
            "metadata": {"supersedes": ["doc.summarize"], "steps": [{"pack": "web.scrape"}]},
        }
    ],
}
FIT: dict[str, object] = {
    "model": "openrouter/auto",
    "intent": "summarize this page",
    "catalog": CATALOG,
    "history": [{"intent": "summarize a page", "tools": ["digest"]}],
}
RANK: dict[str, object] = {"intent": "scrape a page", "catalog": CATALOG}
DECODE: dict[str, object] = {
    "raw": '<think>They want steps.</think>```json\n{"steps": [1, 2,]}\n```',
    "finish_reason": "stop",
    "schema": {"type": "object", "required": ["steps"]},
}

BUDGET: dict[str, object] = {
    "key": "acme/model-1",
    "input_tokens": 24000,
    "output_tokens": 2000,
    "max_catalog_bytes": 12000,
    "tier": "B",
    "context_length": 32768,
    "evidence": "Clean plans up to 24,000 tokens in our runs of January 2026.",
}
BUDGET_CHANGE: dict[str, object] = {"max_catalog_bytes": 9000, "evidence": "Cut replies above."}
