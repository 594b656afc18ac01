"""`conversation_health`: how full a conversation's context is, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Required

from typing_extensions import TypedDict

from helmdash.answers import members
from helmdash.core.budgets.levels import Level
from helmdash.doors.bodies.fields import STRICT, ConversationId
from helmdash.mcp.arguments import ArgumentShape
from helmdash.mcp.problems import not_found
from helmdash.mcp.tools.base import Arguments, McpTool, arguments, text
from helmdash.mcp.tools.care import short_list
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.recorder.catching_up import wait_for_conversation
from helmdash.queries.conversations import conversations


class HealthIn(TypedDict, total=False):
    """Arguments of `conversation_health`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: Required[ConversationId]


# Of no use before the next call, and it costs context.
_UNTOLD = "started_at"
_HEALTH_IN = ArgumentShape(HealthIn)


async def read_health(visit: Visit, conversation_id: str) -> Mapping[str, object]:
    """How a conversation of the key's project stands. Raises Problem if it does not exist."""
    await visit.threads.run(wait_for_conversation, visit.project.id, conversation_id)
    found = await visit.threads.run(
        conversations.find, project_id=visit.project.id, conversation_id=conversation_id
    )
    if found is None:
        raise not_found(f"No conversation of the project {visit.project.slug} has this id.")
    return {
        **{name: told for name, told in members(found.conversation).items() if name != _UNTOLD},
        "remediation": found.care,
        "reminders": short_list(found.reminders),
    }


async def _health(visit: Visit, given: Arguments, report: Report) -> Mapping[str, object]:
    # The API calls it `id`, where it is part of the address.
    named = {"conversation" if name == "id" else name: value for name, value in given.items()}
    return await read_health(visit, _HEALTH_IN.read(named)["conversation"])


CONVERSATION_HEALTH = McpTool(
    name="conversation_health",
    description=f"How full a conversation's context is: level ({', '.join(Level)}), prompt tokens "
    "against the limit, generation and round; what remediation does about it, and the reminders "
    "there are.",
    schema=arguments({"conversation": text("Its id")}, required=("conversation",)),
    scope="read",
    run=_health,
)
