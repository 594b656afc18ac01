"""The tools there are: small on purpose, so that they take little of an agent's context."""

from __future__ import annotations

from helmdash.mcp.tools import conversations, fitting, planning, recording
from helmdash.mcp.tools.base import Tool

TOOLS: tuple[Tool, ...] = (
    planning.PLAN,
    planning.ROUTE,
    fitting.FIT,
    recording.RECORD_CALL,
    conversations.CONVERSATION_HEALTH,
)
BY_NAME = {tool.name: tool for tool in TOOLS}
