"""A home folder in which every agent has written something, and what it comes to by hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SESSION = "11111111-1111-4111-8111-111111111111"
FORK = "22222222-2222-4222-8222-222222222222"
THREAD = "33333333-3333-4333-8333-333333333333"
CHILD = "44444444-4444-4444-8444-444444444444"
NEWER = "55555555-5555-4555-8555-555555555555"
FILLED = "66666666-6666-4666-8666-666666666666"


def write_lines(path: Path, lines: Iterable[object], *, end: str = "") -> Path:
    """JSON lines in a file; `end` comes after the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + end, encoding="utf-8")
    return path


def claude_line(
    message: str,
    *,
    session: str = SESSION,
    request: str | None = None,
    usage: dict[str, Any] | None = None,
    second: int = 0,
    **members: Any,
) -> dict[str, Any]:
    """A block of a response as Claude Code writes it."""
    told = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 5}
    return {
        "type": "assistant",
        "uuid": f"u-{message}-{second}",
        "sessionId": session,
        "version": "2.1.197",
        "cwd": "/srv/somebody/secret-project",
        "timestamp": f"2026-11-20T10:00:{second:02}.123Z",
        "requestId": request or f"req_{message}",
        "message": {
            "id": f"msg_{message}",
            "model": "claude-opus-4-8",
            "role": "assistant",
            "usage": usage if usage is not None else told,
            "content": [{"type": "text", "text": f"The words of {message}"}],
            "stop_reason": None,
        },
        **members,
    }


def codex_total(last: int, total: int, second: int, lane: str = "codex") -> dict[str, Any]:
    """A running total as Codex told it before 0.169."""
    return {
        "timestamp": f"2026-11-20T11:00:{second:02}.000Z",
        "type": "event_msg",
        "payload": {
            "type": "token_count",
            "info": {
                "last_token_usage": {
                    "input_tokens": max(last - 10, 0),
                    "cached_input_tokens": min(last, 7),
                    "output_tokens": min(last, 10),
                    "total_tokens": last,
                },
                "total_token_usage": {"total_tokens": total},
                "model_context_window": 258_400,
            },
            "rate_limits": {"limit_id": lane},
        },
    }


def codex_meta(thread: str, second: int = 0, **members: Any) -> dict[str, Any]:
    """The line that a rollout begins with."""
    payload = {"id": thread, "cwd": "/srv/somebody", "cli_version": "0.150.0", **members}
    at = f"2026-11-20T11:00:{second:02}.000Z"
    return {"timestamp": at, "type": "session_meta", "payload": payload}


def make_home(home: Path) -> Path:
    """Everything below, for `CALLS`."""
    _write_claude(home / ".claude" / "projects" / "-home-somebody")
    _write_codex(home / ".codex" / "sessions" / "2026" / "11" / "20")
    _write_gemini(home / ".gemini" / "tmp" / "abc" / "chats")
    _write_opencode(home / ".local" / "share" / "opencode")
    _write_others(home)
    return home


def _write_claude(root: Path) -> None:
    growing = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 40}
    by_time = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
    }
    rounds = {
        "input_tokens": 900,
        "output_tokens": 9,
        "iterations": [
            {"type": "message", "input_tokens": 400},
            {"type": "compaction", "input_tokens": 9_999},
            {"type": "message", "input_tokens": 500, "cache_read_input_tokens": 11},
        ],
    }
    main = [
        {"type": "user", "sessionId": SESSION, "message": {"role": "user", "content": "Hi"}},
        # One response on three lines, and the usage on each; the last one knows how it ended.
        claude_line("one", second=1),
        claude_line("one", second=2),
        claude_line("one", second=3, usage=growing),
        {"type": "file-history-snapshot", "snapshot": {}},
        claude_line("two", second=5, usage=by_time),
        claude_line("three", second=6, usage=rounds),
        # A failed call, a line that the client made up, and its own refusal.
        {
            **claude_line("failed", second=7, usage={}),
            "isApiErrorMessage": True,
            "apiErrorStatus": 400,
            "error": "invalid_request",
            "errorDetails": '400 {"message":"prompt is too long: 205000 tokens > 200000 maximum",'
            '"quoted":"my secret words"}',
            "message": {"model": "<synthetic>", "usage": {"input_tokens": 0}},
        },
        {
            "type": "assistant",
            "sessionId": SESSION,
            "message": {"model": "<synthetic>", "content": [], "usage": {}},
        },
        {
            "type": "assistant",
            "sessionId": SESSION,
            "isApiErrorMessage": True,
            "message": {"model": "<synthetic>", "content": [], "usage": {}},
        },
        {
            "type": "system",
            "subtype": "compact_boundary",
            "sessionId": SESSION,
            "compactMetadata": {"trigger": "auto", "preTokens": 190_023, "postTokens": 5_000},
        },
        claude_line("four", second=9),
        # A sub-agent as older releases wrote it: in the same file, without a name, also between
        # the lines of a message.
        claude_line("five", second=10, usage={**growing, "output_tokens": 1}),
        {
            **claude_line("old-agent", second=10),
            "isSidechain": True,
            "uuid": "root-line-1",
            "parentUuid": None,
        },
        claude_line("five", second=11, usage=growing),
        {
            **claude_line("old-agent-2", second=11),
            "isSidechain": True,
            "uuid": "root-line-2",
            "parentUuid": "root-line-1",
        },
    ]
    write_lines(root / f"{SESSION}.jsonl", main, end='{"type":"assistant","sess')
    # A fork that repeats its source; a sub-agent; a side question that repeats the main thread.
    copied = [
        {**line, "sessionId": FORK, "forkedFrom": {"sessionId": SESSION, "messageUuid": "x"}}
        for line in main[1:4]
    ]
    write_lines(root / f"{FORK}.jsonl", [*copied, claude_line("forked", session=FORK)])
    agents = root / SESSION / "subagents"
    write_lines(
        agents / "agent-a1.jsonl",
        [{**claude_line("agent", second=12), "isSidechain": True, "agentId": "a1"}],
    )
    write_lines(
        agents / "agent-btw.jsonl",
        [
            {**claude_line("one", request="req_again"), "isSidechain": True, "agentId": "btw"},
            {**claude_line("aside"), "isSidechain": True, "agentId": "btw"},
        ],
    )


def _write_codex(root: Path) -> None:
    write_lines(
        root / f"rollout-2026-11-20T11-00-00-{THREAD}.jsonl",
        [
            codex_meta(THREAD, model_provider="openai"),
            {"type": "turn_context", "payload": {"model": "gpt-5", "turn_id": "t1"}},
            codex_total(110, 110, 1),
            codex_total(110, 110, 2),  # told again for a rate limit
            codex_total(60, 60, 3, lane="other"),  # another lane counts by itself
            codex_total(210, 320, 4),
            {"type": "compacted", "payload": {"message": "What was done."}},
            codex_total(0, 320, 5) | {"note": "what is left"},
            codex_total(50, 370, 6),
            {
                "timestamp": "2026-11-20T11:00:07.000Z",
                "type": "event_msg",
                "payload": {
                    "type": "task_complete",
                    "error": {
                        "message": "secret words",
                        "codex_error_info": {"http_connection_failed": {"http_status_code": 502}},
                    },
                },
            },
        ],
    )
    # A fork begins with all that its source told, at once or later; and its source's own line.
    write_lines(
        root / f"rollout-2026-11-20T12-00-00-{CHILD}.jsonl",
        [
            codex_meta(CHILD, 20, forked_from_id=THREAD, parent_thread_id=THREAD),
            codex_meta(THREAD, 20),
            codex_total(110, 110, 20),
            codex_total(210, 320, 40),
            codex_total(90, 410, 41),
        ],
    )
    usage = {"input_tokens": 500, "cached_input_tokens": 400, "output_tokens": 20}
    write_lines(
        root / f"rollout-2026-11-20T13-00-00-{NEWER}.jsonl",
        [
            codex_meta(NEWER, cli_version="0.169.0"),
            {"type": "turn_context", "payload": {"model": "gpt-5.1"}},
            codex_total(520, 520, 1),
            *(
                {
                    "timestamp": f"2026-11-20T13:00:0{number}.000Z",
                    "type": "token_usage_record",
                    "payload": {"response_id": f"resp_{number}", "usage": usage},
                }
                for number in (1, 2)
            ),
            {"type": "compacted", "payload": {"compaction_response_id": "resp_2"}},
            codex_total(520, 1560, 3),
            {
                "timestamp": "2026-11-20T13:00:04.000Z",
                "type": "token_usage_record",
                "payload": {
                    "response_id": "resp_3",
                    "usage": {"input_tokens": 60, "output_tokens": 5},
                },
            },
        ],
    )
    # Too much for the window: the total is the window then, and goes on from there. A newer release
    # goes on with the thread, and tells each call by a record.
    write_lines(
        root / f"rollout-2026-11-20T14-00-00-{FILLED}.jsonl",
        [
            codex_meta(FILLED),
            codex_total(200_000, 900_000, 1),
            codex_total(0, 258_400, 2),
            codex_total(30_000, 288_400, 3),
            codex_total(40_000, 328_400, 4),
            {
                "timestamp": "2026-11-20T14:00:05.000Z",
                "type": "token_usage_record",
                "payload": {
                    "response_id": "resp_later",
                    "usage": {"input_tokens": 45_000, "output_tokens": 9},
                },
            },
            codex_total(45_009, 373_409, 5),
        ],
    )


def _write_gemini(chats: Path) -> None:
    message = {"type": "gemini", "model": "gemini-3-pro", "timestamp": "2026-11-20T14:00:00Z"}
    inside = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 2, "total": 117}
    beside = {"input": 100, "output": 10, "cached": 40, "thoughts": 0, "tool": 0, "total": 150}
    write_lines(
        chats / "session-2026-a.jsonl",
        [
            {"sessionId": "gem-1", "projectHash": "abc", "kind": "main"},
            {"type": "user", "id": "m0", "content": "Hi"},
            {**message, "id": "m1", "tokens": {**inside, "output": 1, "total": 108}},
            {**message, "id": "m1", "tokens": inside},  # written anew: the last one counts
            {"$set": {"summary": "x"}},
            {**message, "id": "m2"},
            {**message, "id": "m2", "tokens": beside},
            # The history anew, and a message of it that is written again.
            {"$set": {"messages": [{**message, "id": "m1", "tokens": inside}]}},
            {**message, "id": "m2", "tokens": beside, "toolCalls": []},
        ],
    )
    write_lines(
        chats / "gem-1" / "gem-2.jsonl",
        [{"sessionId": "gem-2", "kind": "subagent"}, {**message, "id": "m1", "tokens": inside}],
    )
    old = {"sessionId": "gem-old", "messages": [{**message, "id": "m1", "tokens": inside}]}
    (chats / "session-2025.json").write_text(json.dumps(old), encoding="utf-8")


def _write_opencode(root: Path) -> None:
    root.mkdir(parents=True)
    tokens = {"input": 10, "output": 4, "reasoning": 3, "cache": {"read": 70, "write": 20}}
    said = {"role": "assistant", "modelID": "sonnet", "providerID": "anthropic", "tokens": tokens}
    over = {"created": 1_763_640_000_000, "completed": 1_763_640_001_000}
    rows = [
        ("m1", "ses_a", {**said, "time": over}),
        ("m2", "ses_a", {**said, "time": {"created": 1_763_640_002_000}}),  # under way
        ("m3", "ses_b", {**said, "time": over}),
        ("m4", "ses_a", {"role": "user", "time": over}),
        ("m5", "ses_a", {**said, "time": over, "summary": True}),
        (
            "m6",
            "ses_a",
            {
                "role": "assistant",
                "modelID": "sonnet",
                "time": over,
                "error": {"name": "APIError", "data": {"statusCode": 529, "message": "secret"}},
            },
        ),
    ]
    # A fork has its source's messages under other ids.
    later = {"created": 1_763_640_005_000, "completed": 1_763_640_006_000}
    rows += [(f"f{row[0]}", "ses_f", row[2]) for row in rows if row[1] == "ses_a"]
    rows.append(("m7", "ses_f", {**said, "time": later}))
    # One that somebody has given a title of its own.
    rows += [(f"g{row[0]}", "ses_g", row[2]) for row in rows if row[1] == "ses_a"]
    rows.append(("m8", "ses_g", {**said, "time": {**later, "completed": 1_763_640_007_000}}))
    database = sqlite3.connect(root / "opencode.db")
    database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT)")
    database.execute(
        "INSERT INTO session VALUES ('ses_a', NULL, 'Pomelos'), ('ses_b', 'ses_a', 'Count'),"
        " ('ses_f', NULL, 'Pomelos (fork #1)'), ('ses_g', NULL, 'Other pomelos')"
    )
    database.execute("CREATE TABLE message (id TEXT, session_id TEXT, data TEXT)")
    database.executemany(
        "INSERT INTO message VALUES (?, ?, ?)", [(*ids, json.dumps(data)) for *ids, data in rows]
    )
    database.commit()
    database.close()
    old = root / "storage" / "message" / "ses_old" / "msg_1.json"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({**said, "id": "msg_1", "time": over}), encoding="utf-8")


def _write_others(home: Path) -> None:
    usage = {"input": 5, "output": 6, "cacheRead": 30, "cacheWrite": 9}
    said = {"role": "assistant", "model": "kimi", "provider": "moonshot", "usage": usage}
    at = "2026-11-20T15:00:00Z"
    write_lines(
        home / ".pi" / "agent" / "sessions" / "x" / "s.jsonl",
        [
            {"type": "session", "id": "pi-1", "cwd": "/srv/somebody"},
            {"type": "message", "id": "e1", "timestamp": at, "message": said},
            {"type": "compaction", "tokensBefore": 99_000},
            {
                "type": "message",
                "id": "e2",
                "timestamp": at,
                "message": {**said, "usage": {}, "stopReason": "aborted"},
            },
        ],
    )
    write_lines(  # a fork begins with its source's entries
        home / ".pi" / "agent" / "sessions" / "x" / "t.jsonl",
        [
            {"type": "session", "id": "pi-2", "parentSession": "s.jsonl"},
            {"type": "message", "id": "e1", "timestamp": at, "message": said},
            {"type": "message", "id": "e3", "timestamp": at, "message": said},
        ],
    )
    settings = home / ".config" / "Code" / "User" / "globalStorage"
    for folder, figures in (
        ("saoudrizwan.claude-dev", {"tokensIn": 7, "cacheReads": 50, "cacheWrites": 3}),
        ("rooveterinaryinc.roo-cline", {"tokensIn": 60, "cacheReads": 50, "cacheWrites": 3}),
    ):
        task = settings / folder / "tasks" / "1763640000000"
        task.mkdir(parents=True)
        requests = [
            {**figures, "tokensOut": 2},
            {"cancelReason": "streaming_failed", "streamingFailedMessage": "secret"},
            {"request": "under way"},
        ]
        (task / "ui_messages.json").write_text(
            json.dumps(
                [
                    {
                        "ts": 1_763_640_000_000 + number,
                        "say": "api_req_started",
                        "text": json.dumps(told),
                    }
                    for number, told in enumerate(requests)
                ]
            ),
            encoding="utf-8",
        )
        (task / "task_metadata.json").write_text(
            json.dumps({"model_usage": [{"ts": 1, "model_id": "haiku"}]}), encoding="utf-8"
        )
    write_lines(
        home / ".qwen" / "projects" / "p" / "chats.jsonl",
        [
            {
                "type": "assistant",
                "uuid": "q1",
                "sessionId": "qw-1",
                "model": "qwen3",
                "timestamp": at,
                "usageMetadata": {"promptTokenCount": 80, "candidatesTokenCount": 8},
            },
            {"type": "user", "sessionId": "qw-1"},
            {  # by way of another format, which has the thoughts inside the output
                "type": "assistant",
                "uuid": "q2",
                "sessionId": "qw-1",
                "model": "qwen3",
                "timestamp": at,
                "usageMetadata": {
                    "promptTokenCount": 90,
                    "candidatesTokenCount": 9,
                    "thoughtsTokenCount": 4,
                    "totalTokenCount": 99,
                },
            },
        ],
    )


# By hand: agent, id, conversation, prompt, completion, and what else is told of it.
_OLD_AGENT = f"{SESSION}:root-lin"
CALLS: tuple[tuple[str, str, str, int | None, int | None, dict[str, Any]], ...] = (
    ("claude", "anthropic:req_one", SESSION, 110, 40, {"context": "0"}),
    ("claude", "anthropic:req_two", SESSION, 23, 1, {"context": "0"}),
    ("claude", "anthropic:req_three", SESSION, 511, 9, {"context": "0"}),
    ("claude", "claude:u-failed-7", SESSION, None, None, {"status": "error", "http_status": 400}),
    ("claude", "anthropic:req_four", SESSION, 110, 5, {"context": "1"}),
    ("claude", "anthropic:req_five", SESSION, 110, 40, {"context": "1"}),
    ("claude", "anthropic:req_old-agent", _OLD_AGENT, 110, 5, {"parent": SESSION}),
    ("claude", "anthropic:req_old-agent-2", _OLD_AGENT, 110, 5, {"parent": SESSION}),
    ("claude", "anthropic:req_forked", FORK, 110, 5, {}),
    ("claude", "anthropic:req_agent", f"{SESSION}:a1", 110, 5, {"parent": SESSION}),
    ("claude", "anthropic:req_aside", f"{SESSION}:btw", 110, 5, {"parent": SESSION}),
    ("codex", f"codex:{THREAD}:110", THREAD, 100, 10, {"client_window": 258_400}),
    ("codex", f"codex:{THREAD}:60", THREAD, 50, 10, {}),
    ("codex", f"codex:{THREAD}:320", THREAD, 200, 10, {"context": "0"}),
    ("codex", f"codex:{THREAD}:370", THREAD, 40, 10, {"context": "1"}),
    ("codex", f"codex:{THREAD}:t1:error", THREAD, None, None, {"http_status": 502}),
    ("codex", f"codex:{CHILD}:410", CHILD, 80, 10, {"parent": THREAD}),
    ("codex", "codex:resp_1", NEWER, 500, 20, {"context": "0", "model": "gpt-5.1"}),
    ("codex", "codex:resp_2", NEWER, 500, 20, {"lane": "side", "purpose": "compaction"}),
    ("codex", "codex:resp_3", NEWER, 60, 5, {"context": "1"}),
    ("codex", f"codex:{FILLED}:900000", FILLED, 199_990, 10, {}),
    ("codex", f"codex:{FILLED}:288400", FILLED, 29_990, 10, {}),
    ("codex", f"codex:{FILLED}:328400", FILLED, 39_990, 10, {}),
    ("codex", "codex:resp_later", FILLED, 45_000, 9, {}),
    ("gemini", "gemini:gem-1:m1", "gem-1", 100, 15, {}),
    ("gemini", "gemini:gem-1:m2", "gem-1", 140, 10, {}),
    ("gemini", "gemini:gem-2:m1", "gem-2", 100, 15, {"parent": "gem-1"}),
    ("gemini", "gemini:gem-old:m1", "gem-old", 100, 15, {}),
    ("opencode", "opencode:m1", "ses_a", 100, 7, {}),
    ("opencode", "opencode:m3", "ses_b", 100, 7, {"parent": "ses_a"}),
    ("opencode", "opencode:m5", "ses_a", 100, 7, {"lane": "side"}),
    ("opencode", "opencode:m6", "ses_a", None, None, {"status": "error", "http_status": 529}),
    ("opencode", "opencode:m7", "ses_f", 100, 7, {}),
    ("opencode", "opencode:m8", "ses_g", 100, 7, {}),
    ("opencode", "opencode:msg_1", "ses_old", 100, 7, {}),
    ("pi", "pi:e1:2026-11-20T15:00:00Z", "pi-1", 44, 6, {"context": "0"}),
    ("pi", "pi:e2:2026-11-20T15:00:00Z", "pi-1", None, None, {"status": "cancelled"}),
    ("pi", "pi:e3:2026-11-20T15:00:00Z", "pi-2", 44, 6, {}),
    ("cline", "cline:1763640000000:1763640000000", "cline:1763640000000", 60, 2, {}),
    ("cline", "cline:1763640000000:1763640000001", "cline:1763640000000", None, None, {}),
    ("cline", "roo-code:1763640000000:1763640000000", "roo-code:1763640000000", 60, 2, {}),
    ("cline", "roo-code:1763640000000:1763640000001", "roo-code:1763640000000", None, None, {}),
    ("qwen", "qwen:q1", "qw-1", 80, 8, {"model": "qwen3"}),
    ("qwen", "qwen:q2", "qw-1", 90, 9, {}),
)
