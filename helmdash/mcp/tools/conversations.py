"""`conversation_health`: how full a conversation's context is."""

from __future__ import annotations

from typing import Required

from typing_extensions import TypedDict

from helmdash.mcp import render
from helmdash.mcp.arguments import STRICT, ConversationId, Shape
from helmdash.mcp.problems import not_found
from helmdash.mcp.tools.base import Arguments, Tool, arguments, text
from helmdash.mcp.visit import Report, Visit
from helmdash.queries import conversations


class HealthIn(TypedDict, total=False):
    """Which conversation."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: Required[ConversationId]


_HEALTH_IN = Shape(HealthIn)


async def read_health(visit: Visit, conversation_id: str) -> render.Body:
    """How a conversation of the key's project stands. Raises Problem when there is no such one."""
    found = await visit.threads.run(
        conversations.find, project_id=visit.project.id, conversation_id=conversation_id
    )
    if found is None:
        raise not_found(f"No conversation of the project {visit.project.slug} has this id.")
    return render.conversation(found.conversation)


async def _health(visit: Visit, given: Arguments, report: Report) -> render.Body:
    # The API calls it `id`, where it is part of the address.
    named = {"conversation" if name == "id" else name: value for name, value in given.items()}
    return await read_health(visit, _HEALTH_IN.read(named)["conversation"])


CONVERSATION_HEALTH = Tool(
    name="conversation_health",
    description="How full a conversation's context is: level (healthy, caution, critical, "
    "unknown), prompt tokens against the limit, generation and round.",
    schema=arguments({"conversation": text("Its id")}, required=("conversation",)),
    scope="read",
    run=_health,
)
