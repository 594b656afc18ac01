"""Claude Code: its session, its sub-agents, its side calls and its compactions.

https://code.claude.com/docs/en/llm-gateway-protocol names the headers. The session and the
sub-agent come with every request (2.1.86 and 2.1.139 on); what a request is for comes from 2.1.273
on, and to a gateway only with CLAUDE_CODE_GATEWAY_HINT_HEADERS=1. Without it the request itself
tells (tried with 2.1.197): a turn always has tools or tells the provider how to thin its context
out, a title has neither; a compaction asks for a summary in fixed words; and what comes after it
begins with that summary, which every later request of the same context repeats. A request that goes
on in a message thread has neither its tools nor its beginning with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.agents.contexts import context_of
from helmdash.core.agents.names import agent_name, claude_session
from helmdash.core.agents.side_requests import AUXILIARY, COMPACTION, side_purpose
from helmdash.core.agents.values import AgentCall, RequestFacts
from helmdash.core.calls.lanes import Lane

NAME = "claude-code"
SESSION_HEADER = b"x-claude-code-session-id"
_MAIN_CLASSES = frozenset({"main", "subagent", "workflow"})
_SIDE_CLASSES = {"compaction": COMPACTION, "auxiliary": AUXILIARY}
# How the first message after a compaction goes on (2.1.197).
_SUMMED_UP = "This session is being continued from a previous conversation"
# What its first system block says of a sub-agent's call, also where headers are stripped.
_IS_PART = "cc_is_subagent=true"
_ATTRIBUTION_CHARS = 500


def read_claude_code(headers: Mapping[bytes, bytes], facts: RequestFacts) -> AgentCall | None:
    """What the request says; None where it is not Claude Code's. headers: in small letters."""
    session = _word(headers, SESSION_HEADER) or claude_session(
        (facts.metadata or {}).get("user_id")
    )
    if session is None:
        return None
    part = _word(headers, b"x-claude-code-agent-id")
    above = _word(headers, b"x-claude-code-parent-agent-id")
    purpose, lane = _purpose(headers, facts, is_part=part is not None)
    conversation, parent = agent_name(session, part), None
    if part is not None:
        parent = agent_name(session, above if above != part else None)
    elif _is_nameless_part(facts):
        # Which of the session's sub-agents it is, its history tells.
        conversation, parent = None, agent_name(session, None)
    return AgentCall(
        conversation=conversation,
        parent=parent,
        part=part,
        purpose=purpose,
        lane=lane,
        context=None if facts.is_fragment else context_of(facts.first_user, _SUMMED_UP),
    )


def _purpose(
    headers: Mapping[bytes, bytes], facts: RequestFacts, *, is_part: bool
) -> tuple[str | None, Lane | None]:
    told = _word(headers, b"x-claude-code-request-class")
    if told in _MAIN_CLASSES:
        return None, Lane.MAIN
    purpose = side_purpose(NAME, facts)
    if told in _SIDE_CLASSES:
        return purpose or _SIDE_CLASSES[told], Lane.SIDE
    if purpose is not None:
        return purpose, Lane.SIDE
    is_whole_turn = facts.has_tools or facts.edits_context
    if not (is_whole_turn or facts.is_fragment or is_part or _is_nameless_part(facts)):
        return AUXILIARY, Lane.SIDE
    return None, None


def _is_nameless_part(facts: RequestFacts) -> bool:
    return any(_IS_PART in text[:_ATTRIBUTION_CHARS] for text in facts.system[:1])


def _word(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    return headers.get(name, b"").decode("latin-1").strip() or None
