"""What is not looked into for most requests is what would have told nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from helmdash.core.agents.reading import agent_call, is_no_agents
from helmdash.core.agents.values import RequestFacts
from helmdash.core.upstreams.endpoints import ProviderKind, WireFormat
from helmdash.gateway import kept_objects

_ESCAPED = rb'{"messages":[{"content":[{"file":{"\u0066ile_id":"f-1"}}]}]}'
_SESSION = "6a2b1c9e-0000-4000-8000-123456789abc"


@pytest.mark.parametrize(
    ("headers", "client", "metadata"),
    [
        ({b"x-claude-code-session-id": b"s"}, None, None),
        ({}, None, {"user_id": f"user_a_session_{_SESSION}"}),
        ({b"x-codex-window-id": b"t:1", b"thread-id": b"t"}, None, None),
        ({b"thread-id": b"t"}, "codex", None),
        ({b"x-opencode-session": b"s"}, None, None),
        ({b"x-openwebui-chat-id": b"c"}, None, None),
        ({b"x-roo-task-id": b"1"}, None, None),
        ({b"x-kilocode-taskid": b"1"}, None, None),
        ({b"x-task-id": b"1"}, "cline", None),
        ({b"session_id": b"1"}, "pi", None),
        ({}, "gemini-cli", None),
        ({b"x-session-affinity": b"a"}, None, None),
    ],
)
def test_no_agent_is_passed_over(
    headers: dict[bytes, bytes], client: str | None, metadata: dict[str, Any] | None
) -> None:
    assert agent_call(headers, RequestFacts(metadata=metadata), client=client) is not None
    assert not is_no_agents(headers, metadata, client=client)


@pytest.mark.parametrize("metadata", [None, {}, {"user": "me"}])
def test_other_programs_are_no_agents(metadata: dict[str, Any] | None) -> None:
    headers = {b"user-agent": b"openai", b"session_id": b"1", b"thread-id": b"t"}

    assert is_no_agents(headers, metadata, client="openai-python")
    assert agent_call(headers, RequestFacts(metadata=metadata), client="openai-python") is None


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        {"messages": [{"content": [{"type": "container_upload", "file_id": "f"}]}]},
        {"messages": [{"content": [{"type": "text", "text": "", "file": {"file_id": "f"}}]}]},
        {"messages": [{"content": "hi"}, {"content": [{"type": "x", "source": {"file_id": "f"}}]}]},
        {"messages": [{"role": "assistant", "audio": {"id": "a"}}]},
        {"container": {"id": "c"}},
        {"container": "c"},
    ],
)
def test_no_name_of_an_account_is_passed_over(body: dict[str, Any]) -> None:
    told = [
        *kept_objects.in_messages(body),
        *kept_objects.in_chat(body),
        *kept_objects.in_anthropic(body),
    ]

    assert told
    for wire in (WireFormat.CHAT, WireFormat.ANTHROPIC):
        assert not kept_objects.names_none(orjson.dumps(body), body, wire, ProviderKind.OPENAI)


def test_a_name_that_is_spelled_with_escapes_is_not_passed_over() -> None:
    body = orjson.loads(_ESCAPED)
    assert [*kept_objects.in_messages(body)]
    assert not kept_objects.names_none(_ESCAPED, body, WireFormat.CHAT, ProviderKind.OPENAI)


@pytest.mark.parametrize(
    ("wire", "upstream", "is_none"),
    [
        (WireFormat.CHAT, ProviderKind.OPENAI, True),
        (WireFormat.CHAT, ProviderKind.GEMINI, False),  # images are files there
        (WireFormat.GEMINI, ProviderKind.GEMINI, False),
        (WireFormat.RESPONSES, ProviderKind.OPENAI, False),
    ],
)
def test_only_where_the_bytes_can_tell_are_they_believed(
    wire: WireFormat, upstream: ProviderKind, is_none: bool
) -> None:
    body = b'{"messages":[{"role":"user","content":"hi"}]}'

    assert kept_objects.names_none(body, orjson.loads(body), wire, upstream) is is_none


@pytest.mark.parametrize(
    "content", ["my file_id", None, [{"type": "text", "text": "file_id, audio, container"}]]
)
def test_texts_may_speak_of_files(content: object) -> None:
    body = {"messages": [{"role": "user", "content": content}]}

    told = orjson.dumps(body)
    assert kept_objects.names_none(told, body, WireFormat.CHAT, ProviderKind.OPENAI)
