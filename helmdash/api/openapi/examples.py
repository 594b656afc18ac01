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

ADVANCE: dict[str, object] = {"generation": 18}
ADVANCE_WITH_PROMPT: dict[str, object] = {
    "generation": 19,
    "user_prompt": "And now the second chapter, please.",
    "model": "openai/gpt-4o",
}
_PACKAGE = """## Goal and scope
Translate the manual, chapter by chapter.

## Current progress
Chapter 1 is done.

## Key decisions and constraints

## Changes

## Next steps

## Open questions and risks
"""
ADVANCE_ANSWER: dict[str, object] = {
    "action": "clear",
    "strength": None,
    "text": None,
    "persist": False,
    "remaining": 0,
    "round": 2,
    "carry": ["And now the second chapter, please."],
    "package": _PACKAGE,
    "generation": 19,
    "reason": "The countdown is over.",
}
HOOK_COMPACTION: dict[str, object] = {
    "hook_event_name": "PostCompact",
    "session_id": "5f3c0a1e-6f0b-4a52-9a0b-0b0f2f1d2c3e",
    "trigger": "auto",
}
HOOK_STATUS: dict[str, object] = {
    "session_id": "5f3c0a1e-6f0b-4a52-9a0b-0b0f2f1d2c3e",
    "model": {"id": "claude-sonnet-4-5"},
    "context_window": {"context_window_size": 200_000},
}
CLEAR: dict[str, object] = {"reminder_content": "Chapter 1 is done."}
CLEAR_ANSWER: dict[str, object] = {
    "round": 2,
    "package": _PACKAGE,
    "carried": ["And now the second chapter, please."],
}
REMINDER: dict[str, object] = {"content": "Chapter 1 is done.", "kind": "note", "position": 1}
REMINDER_CHANGE: dict[str, object] = {"position": 1}
REMINDER_ANSWER: dict[str, object] = {
    "id": "rem_019c142f0a00d3b0",
    "position": 1,
    "kind": "note",
    "content": "Chapter 1 is done.",
    "updated_at": "2026-01-31T12:00:00Z",
}

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

ASSEMBLE: dict[str, object] = {
    "model": "openai/gpt-4o",
    "system": "You answer from the context only.",
    "user_query": "How long is the warranty?",
    "chunks": [
        {"id": "terms-4", "text": "The warranty lasts two years.", "source": "terms.pdf",
         "score": 0.91, "provenance": {"page": 4}},
        {"id": "faq-1", "text": "Returns are free for 30 days.", "source": "faq.md", "score": 0.4},
    ],
}  # fmt: skip
ASSEMBLE_STRICT: dict[str, object] = {
    **ASSEMBLE,
    "instructions": "Cite the line above each piece.",
    "mode": "strict_provenance",
    "budget_tokens": 30768,
}
_ASSEMBLED_USER = (
    "Cite the line above each piece.\n\n<context>\n[terms-4 | terms.pdf p. 4]\n"
    "The warranty lasts two years.\n</context>\n\nHow long is the warranty?"
)
ASSEMBLED: dict[str, object] = {
    "prompt": f"You answer from the context only.\n\n{_ASSEMBLED_USER}",
    "user": _ASSEMBLED_USER,
    "manifest": {
        "prompt_hash": "53c9f5331dc3dcbdd6272964e6be098f57ad74e65a1bbd69ef64bfc79717a148",
        "system_tokens": 11,
        "instructions_tokens": 10,
        "user_query_tokens": 8,
        "context_tokens": 23,
        "wrapper_tokens": 6,
        "total_tokens": 52,
        "budget_tokens": 30768,
        "within_budget": True,
        "chunks": [
            {
                "id": "terms-4",
                "source": "terms.pdf",
                "tokens": 17,
                "score": 0.91,
                "included": True,
                "provenance": {"page": 4},
            },
            {
                "id": "faq-1",
                "source": "faq.md",
                "tokens": 15,
                "score": 0.4,
                "included": False,
                "reason": "missing_provenance",
            },
        ],
    },
    "budget": {
        "tokens": 30768,
        "source": "request",
        "key": "openai/gpt-4o",
        "limit_tokens": None,
        "reserve_tokens": None,
        "chars_per_token": 4.0,
        "safety_multiplier": 1.2,
    },
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
TRIAL: dict[str, object] = {"share": 0.2, "conversations": 500}
DISMISSAL: dict[str, object] = {"reason": "The large prompts of May were a test."}
WHAT_IF: dict[str, object] = {
    "title": "Half the input for GPT-4o",
    "edits": [{"key": "openai/gpt-4o", "changes": {"input_tokens": 50000}}],
}
BUDGET_CHANGE: dict[str, object] = {"max_catalog_bytes": 9000, "evidence": "Cut replies above."}

PLAN: dict[str, object] = {
    "user_intent": "Read https://example.com/post and tell me in five lines what it says.",
    "model": "openrouter/auto",
    "catalog": CATALOG,
}
NEXT_STEP: dict[str, object] = {
    "user_intent": "Read https://example.com/post and tell me in five lines what it says.",
    "model": "openrouter/auto",
    "catalog": CATALOG,
    "context": {
        "steps_taken": [{"tool": "web.scrape", "args": {"url": "https://example.com/post"}}]
    },
    "prompt_variant": "single_pick",
    "max_tokens": 2000,
}
ROUTE: dict[str, object] = {
    "user_intent": "What does https://example.com/post say?",
    "model": "openrouter/auto",
    "catalog": CATALOG,
}
FEEDBACK: dict[str, object] = {"followed": True}
_PLAN_ID = "plan_019c142f0a00d3b07384d113edec"
ACCEPTED: dict[str, object] = {"plan_id": _PLAN_ID, "status": "running", "progress": 0}
_ATTEMPT: dict[str, object] = {
    "number": 1,
    "purpose": "plan",
    "call_id": "call_019c142f0a01aa22",
    "model": "openrouter/auto",
    "prompt_variant": "full_steps",
    "response_format": "",
    "max_tokens": 1500,
    "reason": "As it was asked.",
    "cause": None,
    "finish_reason": "stop",
    "latency_ms": 3120,
    "prompt_bytes": 2045,
    "catalog_bytes": 392,
}
PLAN_ANSWER: dict[str, object] = {
    "plan_id": _PLAN_ID,
    "steps": [
        {
            "order": 1,
            "tool": "web.scrape",
            "client_tool": "helmdeck__web-scrape",
            "args": {"url": "https://example.com/post"},
            "rationale": "Get the text of the post.",
        },
        {
            "order": 2,
            "tool": "doc.summarize",
            "client_tool": "helmdeck__doc-summarize",
            "args": {"lines": 5},
            "rationale": "Say it in five lines.",
        },
    ],
    "rewritten_prompt": "Plan for: Read https://example.com/post and tell me in five lines what "
    'it says.\nStep 1: call web.scrape with args {"url": "https://example.com/post"} - Get the '
    'text of the post.\nStep 2: call doc.summarize with args {"lines": 5} - Say it in five '
    "lines.\nTake the steps in this order. When a tool reports an error, stop and show it.",
    "complexity": "pack-chain",
    "reasoning": "The page has to be read before it can be summarized.",
    "model": "openrouter/auto",
    "prompt_variant_used": "full_steps",
    "attempts": [_ATTEMPT],
    "latency_ms": 3180,
}
ROUTE_ANSWER: dict[str, object] = {
    "plan_id": _PLAN_ID,
    "recommendation": {
        "kind": "pipeline",
        "id": "digest",
        "suggested_inputs": {"url": "https://example.com/post"},
        "why": "It reads a page and summarizes it.",
    },
    "alternatives": [{"kind": "pack", "id": "web.scrape", "why": "Gives the text as it is."}],
    "reasoning": "One pipeline does both.",
    "model": "openrouter/auto",
    "prompt_variant_used": "full_steps",
    "attempts": [{**_ATTEMPT, "purpose": "route"}],
    "latency_ms": 3180,
}
