"""The tools there are: small on purpose, so that they take little of an agent's context."""

from __future__ import annotations

from helmdash.mcp.tools import care, conversations, fitting, planning, recording
from helmdash.mcp.tools.base import McpTool

TOOLS: tuple[McpTool, ...] = (
    planning.PLAN,
    planning.ROUTE,
    fitting.FIT,
    recording.RECORD_CALL,
    conversations.CONVERSATION_HEALTH,
    care.ADD_REMINDER,
    care.UPDATE_REMINDER,
    care.DELETE_REMINDER,
    care.CLEAR_MIND,
)
BY_NAME = {tool.name: tool for tool in TOOLS}
