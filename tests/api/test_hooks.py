"""Claude Code's hooks and status line, through the owner."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest

from helmdash.core.access.permissions import MemberRole
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import conversations
from helmdash.records.models import ClientEvent, Conversation, Project, Round
from tests.api.conftest import Door
from tests.factories import make_capture, record, sign_in

PATH = "/hooks/claude-code"


def hook(name: str, **over: object) -> dict[str, object]:
    return {"session_id": "talk", "hook_event_name": name, "cwd": "/x", "new": {"a": 1}, **over}


def prompt(tokens: int, **over: Any) -> Any:
    return make_capture(usage={"prompt_tokens": tokens, "completion_tokens": 10}, **over)


def test_a_compaction_lets_the_next_smaller_prompt_open_a_round(
    owner: Door, project: ProjectInfo
) -> None:
    record(prompt(90_000), project=project)
    for _ in range(2):
        told = owner.post(PATH, hook("PostCompact", trigger="auto", prompt_id="p1"))
        assert (told.status_code, told.json()["kept"]) == (200, True)
    record(prompt(9_000), project=project)
    record(prompt(8_000), project=project)

    opened = Round.objects.order_by("number").values_list("opened_by", flat=True)
    assert list(opened) == ["", "compaction"]
    assert ClientEvent.objects.count() == 1


def test_a_refusal_is_a_reason_to_look_until_the_next_call(
    owner: Door, project: ProjectInfo
) -> None:
    record(project=project)
    said = hook("StopFailure", error="invalid_request", error_details="Prompt is too long")
    assert owner.post(PATH, said).json()["kept"] is True

    row = Conversation.objects.get()
    (reason,) = owner.get("/conversations/talk").json()["attention"]
    assert reason["reason"] == "client_refusal"
    assert "Prompt is too long" in reason["detail"]
    (event,) = [
        each
        for each in owner.get("/conversations/talk/timeline").json()["items"]
        if each["event"] != "call"
    ]
    assert (event["event"], event["generation"], event["call_id"]) == ("client_refusal", 1, None)
    assert event["detail"] == "invalid_request: Prompt is too long"
    assert row.attention > 0

    record(project=project)
    assert owner.get("/conversations/talk").json()["attention"] == []


@pytest.mark.parametrize("payload", ["off", "full", "redacted"])
def test_what_a_failed_turn_quotes_is_kept_where_texts_are(
    owner: Door, project: ProjectInfo, payload: str
) -> None:
    record(project=project)
    Project.objects.update(payload=payload, redaction_patterns=["EMP-[0-9]+"])
    details = "400 Invalid value: 'my diagnosis, EMP-4711'"
    said = hook("StopFailure", error="invalid_request", error_details=details)

    assert owner.post(PATH, said).json()["kept"] is True

    kept = ClientEvent.objects.get().detail
    assert kept.startswith("invalid_request: ")
    assert ("diagnosis" in kept) is (payload != "off")
    assert "EMP-4711" not in kept


def test_a_status_line_is_told_the_light_and_tells_the_window(
    owner: Door, project: ProjectInfo
) -> None:
    body = {"session_id": "talk", "context_window": {"context_window_size": 32_000}}
    before = owner.post(PATH, body).json()
    assert before["status_line"]["text"] == "HelmDash: no call yet"
    assert before["kept"] is False

    record(make_capture(client_name="claude-code"), project=project)
    after = owner.post(PATH, body).json()

    assert after["status_line"]["level"] == "healthy"
    assert after["status_line"]["prompt_tokens"] == 20_000
    found = conversations.standing(project_id=project.id, conversation_id="talk")
    assert found is not None
    assert found.client_window == 32_000
    page = sign_in("somebody", project=project, role=MemberRole.VIEWER).get("/conversations/talk/")
    html = unescape(page.content.decode())
    assert "Claude Code counts on 32,000 tokens, the budget on 128,000" in html
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS=128000" in html
    # The word holds for the calls that follow with this model.
    record(make_capture(client_name="claude-code"), project=project)
    assert Conversation.objects.get().client_window == 32_000


@pytest.mark.parametrize("window", [{}, {"context_window": None}, {"context_window": {}}])
def test_a_status_line_without_a_window_is_told_the_light(
    owner: Door, project: ProjectInfo, window: dict[str, object]
) -> None:
    record(project=project)

    told = owner.post(PATH, {"session_id": "talk", "model": {"id": "m"}, **window}).json()

    assert told["kept"] is False
    assert told["status_line"]["text"].startswith("HelmDash: Healthy | 15% of 128,000 tokens")
    assert owner.post(PATH, {}).status_code == 422


@pytest.mark.parametrize(
    "name",
    "SessionStart UserPromptSubmit PreToolUse PermissionRequest PostToolUse PostToolUseFailure"
    " Notification SubagentStart SubagentStop Stop PreCompact SessionEnd WhateverComesNext".split(),
)
def test_hooks_that_tell_nothing_are_taken(owner: Door, project: ProjectInfo, name: str) -> None:
    record(project=project)
    more = {"tool_input": [1], "source": "compact", "reason": None, "stop_hook_active": False}

    told = owner.post(PATH, hook(name, transcript_path="/x", trigger="auto", **more))

    assert (told.status_code, told.json()["kept"]) == (200, False)
    assert not ClientEvent.objects.exists()


def test_what_cannot_be_kept_is_said(owner: Door, project: ProjectInfo) -> None:
    unknown = owner.post(PATH, hook("PostCompact", session_id="nobody"))
    nameless = owner.post(PATH, {"hook_event_name": "PostCompact"})
    wrong = owner.post(PATH, hook("StopFailure", error=5))
    nothing = owner.post(PATH, hook("SessionEnd", reason="exit"))

    assert unknown.status_code == 404
    assert "nobody" in unknown.json()["detail"]
    assert [each["field"] for each in nameless.json()["errors"]] == ["session_id"]
    assert [each["field"] for each in wrong.json()["errors"]] == ["error"]
    assert (nothing.status_code, nothing.json()) == (200, {"kept": False, "status_line": None})
    assert ClientEvent.objects.count() == 0
