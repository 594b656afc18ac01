"""`add_reminder`, `update_reminder`, `delete_reminder`, `clear_mind`: an agent's own care.

Arguments are the bodies of the JSON API, and with them what is a part of the address there. Each
write of a reminder gives the list as it is now, so that an agent knows what it has; of each only
how it begins, for the list goes into the very context that is to be spared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Required, TypeVar

from django.utils import timezone
from typing_extensions import TypedDict

from helmdash.answers import members
from helmdash.doors.bodies.care import (
    ClearIn,
    ReminderIn,
    ReminderPatch,
    reminder_arguments,
    reminder_changes,
)
from helmdash.doors.bodies.fields import STRICT, ConversationId, ReminderId
from helmdash.mcp.arguments import ArgumentShape
from helmdash.mcp.tools.base import Arguments, McpTool, Schema, arguments, number, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations import care
from helmdash.queries.conversations.care import ReminderView, reminders

Given = TypeVar("Given")
Body = Mapping[str, object]

# Enough to tell reminders apart; 200 of them take about as many tokens as one long reply.
_BEGINNING_CHARS = 80


class AddIn(ReminderIn, total=False):
    """Arguments of `add_reminder`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: Required[ConversationId]


class UpdateIn(ReminderPatch, total=False):
    """Arguments of `update_reminder`; what is left out stays."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: Required[ConversationId]
    reminder_id: Required[ReminderId]


class DeleteIn(TypedDict):
    """Arguments of `delete_reminder`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: ConversationId
    reminder_id: ReminderId


class ClearMindIn(ClearIn, total=False):
    """Arguments of `clear_mind`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    conversation: Required[ConversationId]


def short_list(found: tuple[ReminderView, ...]) -> list[Body]:
    """Reminders as an agent is told which ones there are."""
    return [
        {"id": each.id, "position": each.position, "kind": each.kind, "begins": _beginning(each)}
        for each in found
    ]


def _add(visit: Visit, given: AddIn) -> Body:
    added = care.add_reminder(
        actor=visit.caller.actor,
        project=visit.project,
        conversation=given["conversation"],
        **reminder_arguments(given),
        now=timezone.now(),
    )
    return {"reminder": added, **_all(visit, given["conversation"])}


def _update(visit: Visit, given: UpdateIn) -> Body:
    changed = care.update_reminder(
        actor=visit.caller.actor,
        project=visit.project,
        conversation=given["conversation"],
        reminder_id=given["reminder_id"],
        **reminder_changes(given),
        now=timezone.now(),
    )
    return {"reminder": changed, **_all(visit, given["conversation"])}


def _delete(visit: Visit, given: DeleteIn) -> Body:
    care.delete_reminder(
        actor=visit.caller.actor,
        project=visit.project,
        conversation=given["conversation"],
        reminder_id=given["reminder_id"],
        now=timezone.now(),
    )
    return {"deleted": given["reminder_id"], **_all(visit, given["conversation"])}


def _clear_mind(visit: Visit, given: ClearMindIn) -> Body:
    cleared = care.clear(
        actor=visit.caller.actor,
        project=visit.project,
        conversation=given["conversation"],
        reminder_content=given.get("reminder_content"),
        now=timezone.now(),
    )
    return members(cleared)


def _all(visit: Visit, conversation: str) -> Body:
    found = reminders(project_id=visit.project.id, conversation=conversation)
    return {"reminders": short_list(found or ())}


def _beginning(value: ReminderView) -> str:
    line = " ".join(value.content.split())
    if len(line) <= _BEGINNING_CHARS:
        return line
    return f"{line[: _BEGINNING_CHARS - 1]}…"


def _tool(
    name: str,
    description: str,
    shape: ArgumentShape[Given],
    schema: Schema,
    do: Callable[[Visit, Given], Body],
) -> McpTool:
    async def run(visit: Visit, given: Arguments, report: Report) -> Body:
        return await visit.threads.run(do, visit, shape.read(given))

    return McpTool(name=name, description=description, schema=schema, scope="record", run=run)


_CONVERSATION = text("Its id")
_KIND: Schema = {"enum": ["note", "re_entry"]}

ADD_REMINDER = _tool(
    "add_reminder",
    "Write down what must survive a fresh start of the conversation. Gives all reminders.",
    ArgumentShape(AddIn),
    arguments(
        {
            "conversation": _CONVERSATION,
            "content": text(),
            "kind": _KIND,
            "position": number("From 1; default: last"),
        },
        required=("conversation", "content"),
    ),
    _add,
)
UPDATE_REMINDER = _tool(
    "update_reminder",
    "Change or move a reminder.",
    ArgumentShape(UpdateIn),
    arguments(
        {
            "conversation": _CONVERSATION,
            "reminder_id": text(),
            "content": text(),
            "kind": _KIND,
            "position": number(),
        },
        required=("conversation", "reminder_id"),
    ),
    _update,
)
DELETE_REMINDER = _tool(
    "delete_reminder",
    "Delete a reminder that no longer holds.",
    ArgumentShape(DeleteIn),
    arguments(
        {"conversation": _CONVERSATION, "reminder_id": text()},
        required=("conversation", "reminder_id"),
    ),
    _delete,
)
CLEAR_MIND = _tool(
    "clear_mind",
    "Begin the conversation anew: the next round starts with `package` (the reminders) and "
    "`carried` (the user's texts not yet answered); the rest of the history is left behind.",
    ArgumentShape(ClearMindIn),
    arguments(
        {"conversation": _CONVERSATION, "reminder_content": text("One more reminder before it")},
        required=("conversation",),
    ),
    _clear_mind,
)
