"""Conversations: the list, one, and its timeline."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.list_queries import narrowing
from helmdash.api.parsing import read_query, require_conversation_id
from helmdash.api.preconditions import is_guarded, require_match
from helmdash.api.problems import Code, Problem, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import conversations as shapes
from helmdash.operations.recorder.catching_up import wait_for_conversation
from helmdash.operations.retention import erasing
from helmdash.queries.conversations import conversations, listing, timeline
from helmdash.queries.conversations.filters import CONVERSATION_TERMS, ConversationFilters

router = Router()
_TAG = "conversations"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")


@route(
    router,
    "GET",
    "/conversations",
    tag=_TAG,
    scope="read",
    query=shapes.LIST_QUERY,
    answers={
        200: Answer(meaning="A page of conversations.", shape=listing.ConversationPage),
        304: _SAME,
    },
)
def list_conversations(request: HttpRequest) -> HttpResponse:
    """List conversations, newest first.

    Every filter narrows the list; an empty one is left out. For a page of several filters at most
    20,000 conversations are looked at: `next` may follow a page that is not full.
    """
    query = read_query(request, shapes.LIST_QUERY)
    found = listing.page(
        project_id=access_of(request).project.id,
        filters=ConversationFilters(
            level=query.get("level"),
            model=query.get("model") or None,
            client=query.get("client") or None,
            min_calls=query.get("min_calls"),
            **narrowing(query, CONVERSATION_TERMS.fields),
            since=query.get("since"),
            until=query.get("until"),
        ),
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    return read(request, found)


@route(
    router,
    "GET",
    "/conversations/{conversation_id}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="The conversation.", shape=conversations.ConversationDetail),
        304: _SAME,
    },
)
def get_conversation(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Read one conversation.

    The level is that of its newest call; `known_level` is the last one that could be judged.
    `remediation` is about the level held, which is left downwards only well below its line.
    """
    project = access_of(request).project
    wait_for_conversation(project.id, conversation_id)
    found = conversations.find(project_id=project.id, conversation_id=conversation_id)
    if found is None:
        raise _unknown(project.slug)
    return read(request, found)


@route(
    router,
    "GET",
    "/conversations/{conversation_id}/timeline",
    tag=_TAG,
    scope="read",
    query=shapes.PAGE_QUERY,
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="A page of events.", shape=timeline.Timeline),
        304: _SAME,
    },
)
def get_timeline(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Read what happened in a conversation, oldest first.

    A page holds `limit` generations; one may have several events.
    """
    query = read_query(request, shapes.PAGE_QUERY)
    project = access_of(request).project
    wait_for_conversation(project.id, conversation_id)
    found = timeline.timeline(
        project_id=project.id,
        conversation_id=conversation_id,
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    if found is None:
        raise _unknown(project.slug)
    return read(request, found)


@route(
    router,
    "DELETE",
    "/conversations/{conversation_id}",
    tag=_TAG,
    scope="admin",
    is_guarded=True,
    answers={
        200: Answer(
            meaning="What is gone; zeros where nothing was.", shape=shapes.ErasedConversation
        )
    },
)
def erase_conversation(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Erase one conversation, for good.

    Its calls with their texts, fits and plans that named it, its reminders, rounds and guidance go,
    and its sub-agents' with them; a message that a call of another conversation carries stays with
    that one. To ask again changes nothing. A call that is reported later begins the conversation
    anew.
    """
    require_conversation_id(conversation_id)
    access = access_of(request)
    if is_guarded(request):
        # Just before: an erasure takes many transactions, and no call waits for one.
        found = conversations.find(project_id=access.project.id, conversation_id=conversation_id)
        require_match(request, found)
    erased = erasing.erase_conversation(
        actor=access.actor,
        project=access.project,
        conversation=conversation_id,
        now=timezone.now(),
    )
    return answer(shapes.ErasedConversation(conversation=conversation_id, erased=erased))


def _unknown(project: str) -> Problem:
    return not_found(f"No conversation of the project {project} has this id.")
