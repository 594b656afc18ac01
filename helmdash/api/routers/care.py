"""Care of a conversation: the step before each generation, reminders, and the fresh start."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, require_conversation_id
from helmdash.api.problems import Code
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import care as shapes
from helmdash.doors.bodies.care import (
    ClearIn,
    ReminderIn,
    ReminderPatch,
    reminder_arguments,
    reminder_changes,
)
from helmdash.operations import care
from helmdash.queries.conversations.care import (
    CareView,
    ReminderList,
    ReminderView,
    care_of,
    reminders,
)

router = Router()
_TAG = "conversations"


@route(
    router,
    "POST",
    "/conversations/{conversation_id}/advance",
    tag=_TAG,
    scope="record",
    once=Once(),
    body=shapes.AdvanceIn,
    is_body_optional=True,
    body_examples={"a tool loop": examples.ADVANCE, "a user's turn": examples.ADVANCE_WITH_PROMPT},
    answers={
        200: Answer(
            meaning="What to do first.", shape=care.Advanced, example=examples.ADVANCE_ANSWER
        )
    },
)
def advance_conversation(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Ask what to do before a generation.

    Near the limit the agent gets guidance, then a countdown, and in the end a fresh start. Call it
    once before each generation, user turns and tool loops alike. A conversation that has no call
    yet is healthy.
    """
    body = read_body(request, shapes.ADVANCE, is_optional=True)
    require_conversation_id(conversation_id)
    told = care.advance(
        project=access_of(request).project,
        conversation=conversation_id,
        generation=body.get("generation"),
        has_user_prompt=bool(body.get("has_user_prompt")),
        user_prompt=body.get("user_prompt"),
        model=body.get("model"),
        now=timezone.now(),
    )
    return answer(told)


@route(
    router,
    "POST",
    "/conversations/{conversation_id}/clear",
    tag=_TAG,
    scope="record",
    once=Once(),
    body=ClearIn,
    is_body_optional=True,
    body_examples={"with a last reminder": examples.CLEAR},
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(
            meaning="The round that is open now.", shape=care.Cleared, example=examples.CLEAR_ANSWER
        )
    },
)
def clear_conversation(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Give a conversation a fresh start.

    Opens the next round. Begin it with `package`, then `carried`; nothing else of the history is
    needed. In a round without calls nothing is cleared, and the response is the same again.
    """
    body = read_body(request, shapes.CLEAR, is_optional=True)
    project = access_of(request).project
    told = care.clear(
        actor=access_of(request).actor,
        project=project,
        conversation=conversation_id,
        reminder_content=body.get("reminder_content"),
        now=timezone.now(),
    )
    return answer(told)


@route(
    router,
    "POST",
    "/conversations/{conversation_id}/go-on",
    tag=_TAG,
    scope="record",
    once=Once(),
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="Where remediation stands now.", shape=CareView)},
)
def go_on(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Let care go on clearing a conversation where it has stopped.

    Care stops when two rounds in a row began alike and brought nothing new (`braked_at`). The next
    generation then begins with a clear. Where care has not stopped, nothing changes.
    """
    project = access_of(request).project
    care.go_on(actor=access_of(request).actor, project=project, conversation=conversation_id)
    return answer(care_of(project_id=project.id, conversation=conversation_id))


@route(
    router,
    "GET",
    "/conversations/{conversation_id}/reminders",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="All of them.", shape=ReminderList),
        304: Answer(meaning="Nothing changed since the ETag of If-None-Match."),
    },
)
def list_reminders(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """List the reminders of a conversation, by position."""
    project = access_of(request).project
    found = reminders(project_id=project.id, conversation=conversation_id)
    if found is None:
        raise care.NoConversation
    return read(request, ReminderList(items=found))


@route(
    router,
    "POST",
    "/conversations/{conversation_id}/reminders",
    tag=_TAG,
    scope="record",
    once=Once(),
    body=ReminderIn,
    body_examples={"a note": examples.REMINDER},
    may=(Code.NOT_FOUND,),
    answers={
        201: Answer(
            meaning="The new reminder.", shape=ReminderView, example=examples.REMINDER_ANSWER
        )
    },
)
def add_reminder(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Add a reminder.

    Reminders survive a fresh start: the re-entry package is made of them. The ones behind it move
    on by one place. A conversation has 200 at most.
    """
    body = read_body(request, shapes.ADD)
    added = care.add_reminder(
        actor=access_of(request).actor,
        project=access_of(request).project,
        conversation=conversation_id,
        **reminder_arguments(body),
        now=timezone.now(),
    )
    return answer(added, status=201)


@route(
    router,
    "PATCH",
    "/conversations/{conversation_id}/reminders/{reminder_id}",
    tag=_TAG,
    scope="record",
    body=ReminderPatch,
    body_examples={"to the front": examples.REMINDER_CHANGE},
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="The reminder as it is now.", shape=ReminderView)},
)
def change_reminder(request: HttpRequest, conversation_id: str, reminder_id: str) -> HttpResponse:
    """Change or move a reminder.

    Members left out stay.
    """
    body = read_body(request, shapes.CHANGE)
    changed = care.update_reminder(
        actor=access_of(request).actor,
        project=access_of(request).project,
        conversation=conversation_id,
        reminder_id=reminder_id,
        **reminder_changes(body),
        now=timezone.now(),
    )
    return answer(changed)


@route(
    router,
    "DELETE",
    "/conversations/{conversation_id}/reminders/{reminder_id}",
    tag=_TAG,
    scope="record",
    may=(Code.NOT_FOUND,),
    answers={204: Answer(meaning="The reminder is gone.")},
)
def delete_reminder(request: HttpRequest, conversation_id: str, reminder_id: str) -> HttpResponse:
    """Delete a reminder.

    The ones behind it move up.
    """
    care.delete_reminder(
        actor=access_of(request).actor,
        project=access_of(request).project,
        conversation=conversation_id,
        reminder_id=reminder_id,
        now=timezone.now(),
    )
    return HttpResponse(status=204)
