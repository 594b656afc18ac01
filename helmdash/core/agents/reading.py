"""What a request says of itself, by the agent that made it: rule "agents-3".

Most agents name their conversation in a header. A name counts only where it is known to stand for
one conversation: a header that any program may use for a browser's session would join chats that
have nothing to do with each other, which is worse than to miss that one goes on (ADR 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.agents import claude_code, codex
from helmdash.core.agents.claude_code import read_claude_code
from helmdash.core.agents.codex import read_codex
from helmdash.core.agents.contexts import context_of
from helmdash.core.agents.names import foreign_name
from helmdash.core.agents.side_requests import side_purpose
from helmdash.core.agents.values import AgentCall, RequestFacts
from helmdash.core.calls.lanes import Lane

# Stored with every call. Another meaning of a header, or another prompt, is a new version.
AGENTS_VERSION = "agents-3"


@dataclass(frozen=True, slots=True)
class _Agent:
    """Headers that name a conversation, best first, and its parent. signs: headers that only this
    agent sends, by which it is known besides its user agent. sums_up: how its first message goes on
    after a compaction; "": the compaction's own call tells, which names the conversation."""

    client: str
    conversation: tuple[bytes, ...] = ()
    parent: bytes | None = None
    signs: tuple[bytes, ...] = ()
    sums_up: str = ""


# Tried: opencode 1.18.33, pi 1.6.0 (compat.sendSessionAffinityHeaders; not when it compacts).
# From public sources: Open WebUI (ENABLE_FORWARD_USER_INFO_HEADERS), Roo Code, Kilo Code and Cline
# (the id of a task). Gemini CLI 0.61.0 and Qwen Code 0.24.4 name nothing: their conversations are
# known by their messages, Gemini CLI's decisions by their JSON.
_AGENTS = (
    _Agent(
        "opencode",
        (b"x-opencode-session", b"x-session-id", b"x-session-affinity"),
        b"x-parent-session-id",
        (b"x-opencode-session", b"x-parent-session-id"),
    ),
    _Agent("open-webui", (b"x-openwebui-chat-id",), None, (b"x-openwebui-chat-id",)),
    _Agent("roo-code", (b"x-roo-task-id", b"session_id"), None, (b"x-roo-task-id",)),
    _Agent(
        "kilo-code",
        (b"x-kilocode-taskid", b"session_id"),
        b"x-kilocode-parent-taskid",
        (b"x-kilocode-taskid",),
    ),
    _Agent("cline", (b"x-task-id", b"session_id")),
    _Agent(
        "pi",
        (b"x-session-affinity", b"x-session-id", b"session-id", b"session_id"),
        sums_up="The conversation history before this point was compacted into the following",
    ),
    _Agent("gemini-cli"),
    _Agent("qwen-code"),
)
# Meant to keep one conversation on one server, whoever sends it.
_AFFINITY = b"x-session-affinity"
# Whatever tells of an agent: a header, or what the user agent says. Claude Code has its metadata.
_SIGNS = frozenset(
    {
        _AFFINITY,
        claude_code.SESSION_HEADER,
        *codex.OWN_HEADERS,
        *(sign for agent in _AGENTS for sign in agent.signs),
    }
)
_CLIENTS = frozenset({codex.NAME, *(agent.client for agent in _AGENTS)})


def is_no_agents(
    headers: Mapping[bytes, bytes], metadata: Mapping[str, object] | None, *, client: str | None
) -> bool:
    """Whether `agent_call` would find nothing, whatever else the body holds: as of most programs,
    whose bodies nobody has to look into then."""
    is_named = client in _CLIENTS or not _SIGNS.isdisjoint(headers)
    return not is_named and (not metadata or metadata.get("user_id") is None)


def agent_call(
    headers: Mapping[bytes, bytes], facts: RequestFacts, *, client: str | None
) -> AgentCall | None:
    """What the request's own words say of it; None where they say nothing. Never raises.

    headers: names in small letters. facts: of the body. client: who the user agent says it is
    (core.conversations.clients); None: it says nothing.
    """
    found = read_claude_code(headers, facts) or read_codex(headers, client=client)
    if found is not None:
        return found
    agent = _agent_of(headers, client)
    if agent is None:
        name = foreign_name(headers.get(_AFFINITY, b"").decode("latin-1"))
        return None if name is None else AgentCall(conversation=name)
    return _by_headers(agent, headers, facts)


def _agent_of(headers: Mapping[bytes, bytes], client: str | None) -> _Agent | None:
    for agent in _AGENTS:
        if agent.client == client or any(sign in headers for sign in agent.signs):
            return agent
    return None


def _by_headers(agent: _Agent, headers: Mapping[bytes, bytes], facts: RequestFacts) -> AgentCall:
    name = next((found for each in agent.conversation if (found := _name(headers, each))), None)
    parent = _name(headers, agent.parent) if agent.parent is not None else None
    is_part = name is not None and parent is not None and parent != name
    purpose = side_purpose(agent.client, facts)
    return AgentCall(
        conversation=name,
        parent=parent if is_part else None,
        part=name if is_part else None,
        purpose=purpose,
        lane=Lane.SIDE if purpose else None,
        context=context_of(facts.first_user, agent.sums_up) if agent.sums_up else None,
    )


def _name(headers: Mapping[bytes, bytes], header: bytes) -> str | None:
    return foreign_name(headers.get(header, b"").decode("latin-1"))
