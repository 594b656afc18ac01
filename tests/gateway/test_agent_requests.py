"""The requests in fixtures/clients say of themselves what their files hold. No server is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helmdash.core.agents.reading import agent_call
from helmdash.core.agents.values import AgentCall, RequestFacts
from helmdash.core.calls.lanes import Lane
from helmdash.core.conversations.chains import Seen, place
from helmdash.core.conversations.clients import PROMPTS, client_by_prompt, client_of
from helmdash.core.conversations.fingerprints import ChatTurn, fingerprints_of
from helmdash.gateway.message_digest import traces_of
from helmdash.gateway.requests.naming import opening_prompt
from helmdash.gateway.requests.request_facts import request_facts
from helmdash.gateway.requests.routes import find_route
from helmdash.installation import FIXTURES
from helmdash.providers.wire import ChatRequest

pytestmark = pytest.mark.one_database

SUM_UP = "Your task is to create a detailed summary of the conversation"

SAMPLES = sorted(FIXTURES.glob("clients/*/*.json"))


def read(headers: dict[str, str], facts: RequestFacts | None = None) -> AgentCall | None:
    told = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    client = client_of(headers.get("user-agent", ""))
    return agent_call(told, facts or RequestFacts(), client=client.name if client else None)


def request_of(sample: dict[str, Any]) -> ChatRequest:
    path, _, query = sample["path"].partition("?")
    route = find_route(path, {}, query.encode())
    assert route is not None
    return route.client.read_request(sample["body"], model=route.model, stream=route.stream)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_request_says_what_it_is(path: Path) -> None:
    sample = json.loads(path.read_text())
    facts = request_facts(request_of(sample)) if "body" in sample else None

    found = read(sample["headers"], facts) or AgentCall()

    says = {name: value for name in AgentCall.__slots__ if (value := getattr(found, name))}
    if sample["says"].get("context") == "?":
        assert re.fullmatch("s[0-9a-f]{16}", says.pop("context"))
        del sample["says"]["context"]
    assert says == sample["says"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_request_tells_its_agent(path: Path) -> None:
    sample = json.loads(path.read_text())
    named = client_of(sample["headers"].get("user-agent", ""))
    prompt = opening_prompt(request_of(sample)) if "body" in sample else ""

    found = client_by_prompt(named, prompt)

    assert (found.name if found else None) == sample.get("client")


def test_there_are_samples_of_each_agent_that_was_tried() -> None:
    tried = {path.parent.name for path in SAMPLES}

    assert {"claude-code", "codex", "gemini-cli", "opencode", "qwen-code"} <= tried
    assert {name for name, _, _ in PROMPTS} <= tried


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"user-agent": "OpenAI/Python 1.99.0"}, None),
        # A session of anything, and a request's id of anybody.
        ({"x-session-id": "browser-7", "session-id": "7", "x-client-request-id": "7"}, None),
        ({"x-session-affinity": "chat 7"}, AgentCall(conversation="chat=207")),
        ({"x-openwebui-chat-id": "c1"}, AgentCall(conversation="c1")),
        ({"x-kilocode-taskid": "t1"}, AgentCall(conversation="t1")),
        (
            {"user-agent": "pi/0.80 (linux)", "session_id": "p1"},
            AgentCall(conversation="p1", context="0"),
        ),
        # Codex before it wrote hyphens.
        (
            {"user-agent": "codex_cli_rs/0.60.0", "session_id": "s1"},
            AgentCall(conversation="s1"),
        ),
        (
            {
                "user-agent": "codex_cli_rs/0.60.0",
                "session_id": "s",
                "x-openai-subagent": "compact",
            },
            AgentCall(conversation="s", purpose="compaction", lane=Lane.SIDE),
        ),
        # A header that holds nonsense says nothing.
        (
            {"x-codex-turn-metadata": "{" * 9000, "thread-id": "t", "x-codex-window-id": "t:x"},
            AgentCall(conversation="t"),
        ),
        ({"x-codex-turn-metadata": '{"thread_id":7}'}, None),
        (
            {
                "thread-id": "t",
                "x-codex-parent-thread-id": "t",
                "x-codex-window-id": "t:00000000012345",
            },
            AgentCall(conversation="t"),
        ),
        ({"x-claude-code-session-id": " "}, None),
    ],
)
def test_a_header_counts_where_it_names_a_conversation(
    headers: dict[str, str], expected: AgentCall | None
) -> None:
    assert read(headers) == expected


@pytest.mark.parametrize(
    ("facts", "purpose"),
    [
        (RequestFacts(has_tools=True), None),
        (RequestFacts(edits_context=True), None),  # a person who took all tools away
        (RequestFacts(), "auxiliary"),
        (RequestFacts(is_fragment=True), None),  # its tools are in the thread
        (RequestFacts(is_fragment=True, last_user=(SUM_UP,)), "compaction"),
        (RequestFacts(schema_members=frozenset({"title"})), "title"),
        # A turn whose reply the SDK's user wants as JSON.
        (RequestFacts(has_tools=True, schema_members=frozenset({"title"})), None),
        (RequestFacts(has_tools=True, last_user=("[SUGGESTION MODE: say what",)), "suggest"),
        # A person who pastes the words far down, or into an older message.
        (
            RequestFacts(
                has_tools=True,
                last_user=(
                    "x" * 2000 + "Your task is to create a detailed summary of the conversation",
                ),
                first_user=(SUM_UP,),
            ),
            None,
        ),
    ],
)
def test_a_turn_of_claude_code_is_no_side_call(facts: RequestFacts, purpose: str | None) -> None:
    found = read({"x-claude-code-session-id": "s1"}, facts)

    assert found is not None
    assert (found.purpose, found.lane) == (purpose, Lane.SIDE if purpose else None)


def test_a_request_within_a_thread_says_nothing_of_its_context() -> None:
    found = read({"x-claude-code-session-id": "s1"}, RequestFacts(is_fragment=True))

    assert found == AgentCall(conversation="s1")


def test_a_sub_agent_without_headers_is_told_by_its_first_system_block() -> None:
    told = "x-anthropic-billing-header: cc_version=2.1.197; cc_is_subagent=true;"
    metadata = {"user_id": '{"session_id":"s1"}'}

    found = read({}, RequestFacts(metadata=metadata, system=(told,), has_tools=True))

    assert found == AgentCall(parent="s1", context="0")


@pytest.mark.parametrize(("reply_chars", "placing"), [(210, "continue"), (60, "new")])
def test_a_resumed_session_of_qwen_code_goes_on_by_replies_of_some_length(
    reply_chars: int, placing: str
) -> None:
    """It takes a reminder out of its first message when it is resumed. By short replies alone no
    session is known: what else tells two of them apart is in the reminders."""
    sample = json.loads((FIXTURES / "clients/qwen-code/1_turn.json").read_text())
    asked = sample["body"]["messages"]
    reply = {"role": "assistant", "content": "w" * reply_chars}
    resumed = json.loads(json.dumps(asked))
    parts = resumed[-1]["content"]
    parts.remove(next(part for part in parts if "The current date is" in part["text"]))
    resumed += [reply, {"role": "user", "content": "two"}]

    first, second = (
        traces_of(request_of({**sample, "body": {**sample["body"], "messages": messages}}))
        for messages in (asked, resumed)
    )

    answer = ChatTurn("assistant", reply["content"])
    left = fingerprints_of(first.links(reply=answer, is_retry=False), 1)
    seen = [Seen(conversation=1, generation=1, newest=1)]
    found = place(second.links(reply=None, is_retry=False), lambda one: seen if one in left else [])
    assert found.placing == placing
