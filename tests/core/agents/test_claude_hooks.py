"""What Claude Code's hooks and its status line tell (samples of 2.1.197)."""

from __future__ import annotations

import pytest

from helmdash.core.agents.claude_hooks import (
    ClientEvent,
    ClientEventKind,
    HookProblem,
    is_status,
    read_hook,
    read_status,
)
from helmdash.core.agents.status_line import status_line
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetSpec, Tier
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.withheld import NOT_KEPT

SESSION = {"session_id": "5f3c", "transcript_path": "/x/5f3c.jsonl", "cwd": "/x"}
FAILED = {**SESSION, "hook_event_name": "StopFailure", "prompt_id": "p1"}


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        ({"hook_event_name": "PostCompact", "trigger": "auto"}, "client_compaction", "auto"),
        (
            {**FAILED, "error": "invalid_request", "error_details": "Prompt is too long"},
            "client_refusal",
            "invalid_request: Prompt is too long",
        ),
        (
            {
                **FAILED,
                "error": "invalid_request",
                "error_details": '400 {"message": "prompt is too long: 9 tokens > 8 maximum"}',
            },
            "client_failure",
            'invalid_request: 400 {"message": "prompt is too long: 9 tokens > 8 maximum"}',
        ),
        ({**FAILED, "error": "rate_limit"}, "client_failure", "rate_limit"),
        (
            {**FAILED, "error": "unknown", "last_assistant_message": "Prompt is too long"},
            "client_refusal",
            "unknown",
        ),
    ],
)
def test_what_is_kept(body: dict[str, object], kind: str, detail: str) -> None:
    event = read_hook({**SESSION, **body})

    assert event is not None
    told = event.told(keeps_texts=True)
    assert (event.kind.value, told, event.conversation) == (kind, detail, "5f3c")


@pytest.mark.parametrize(
    ("details", "kept"),
    [
        ("400 Invalid value: 'my diagnosis is secret'", NOT_KEPT),
        ("400 maximum context length is 8192 tokens, not my diagnosis", "is 8192 tokens"),
        ("overloaded_error", "overloaded_error"),
    ],
)
def test_where_no_texts_are_kept_an_error_s_words_are_not_either(details: str, kept: str) -> None:
    event = read_hook({**FAILED, "error": "invalid_request", "error_details": details})

    assert event is not None
    told = event.told(keeps_texts=False)
    assert told.startswith("invalid_request: ")
    assert kept in told
    assert "diagnosis" not in told


def test_a_turn_tells_an_event_twice_and_a_sub_agent_is_its_own() -> None:
    first = read_hook({**FAILED, "error": "overloaded"})
    other = read_hook({**FAILED, "error": "overloaded", "agent_id": "a7", "prompt_id": None})

    assert first == read_hook({**FAILED, "error": "overloaded"})
    assert other == ClientEvent(
        kind=ClientEventKind.FAILURE, conversation="5f3c:a7", key="", detail="overloaded"
    )


@pytest.mark.parametrize("name", ["SessionStart", "PreCompact", "SessionEnd", "Stop", "New"])
def test_other_hooks_tell_nothing_new(name: str) -> None:
    assert read_hook({**SESSION, "hook_event_name": name}) is None


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"hook_event_name": "PostCompact"}, "session_id"),
        ({"session_id": 5, "hook_event_name": "PostCompact"}, "session_id"),
        ({**SESSION, "hook_event_name": "PostCompact", "trigger": []}, "trigger"),
    ],
)
def test_a_fault_names_its_member(body: dict[str, object], member: str) -> None:
    with pytest.raises(HookProblem, match=f"^{member}: "):
        read_hook(body)


@pytest.mark.parametrize(
    ("told", "window"),
    [
        ({"context_window_size": 200_000}, 200_000),
        ({"context_window_size": True}, None),
        ({"context_window_size": -1}, None),
        ({"context_window_size": 10**30}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_window_that_it_counts_on(told: object, window: int | None) -> None:
    body = {**SESSION, "model": {"id": "claude-opus-4-8"}, "context_window": told}

    assert is_status(body)
    assert read_status(body).window == window


@pytest.mark.parametrize(
    ("tokens", "client_window", "text"),
    [
        (50_000, None, "HelmDash: Healthy | 25% of 200,000 tokens | 50,000 to caution"),
        (120_000, 200_000, "HelmDash: Caution | 60% of 200,000 tokens | 60,000 to critical"),
        # Not 90%, where critical begins, nor full: what the pages say of it.
        (179_900, None, "HelmDash: Caution | 89% of 200,000 tokens | 100 to critical"),
        (199_900, None, "HelmDash: Critical | 99% of 200,000 tokens | compact now"),
        (
            190_000,
            1_000_000,
            (
                "HelmDash: Critical | 95% of 200,000 tokens | compact now"
                " | client counts on 1,000,000, budget 200,000"
            ),
        ),
        (None, None, "HelmDash: Unknown"),
    ],
)
def test_the_line_says_light_fullness_and_what_comes_next(
    tokens: int | None, client_window: int | None, text: str
) -> None:
    rows = [
        BudgetSpec(
            key=key, input_tokens=200_000, output_tokens=1, tier=Tier.A, context_length=200_000
        )
        for key in ("", "m")
    ]
    health = assess(tokens, BudgetTable(rows, []).lookup("m"))

    assert status_line(health, round_number=1, client_window=client_window).text == text
    assert status_line(None, round_number=None, client_window=None).level is Level.UNKNOWN
