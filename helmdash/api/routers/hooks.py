"""Hooks: what agents tell besides their calls."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body
from helmdash.api.problems import Code, invalid_field, not_found
from helmdash.api.responding import answer
from helmdash.api.routes import Answer, route
from helmdash.api.schemas.hooks import CLAUDE_HOOK, ClaudeHookIn
from helmdash.core.agents.claude_hooks import HookProblem
from helmdash.operations.care import NoConversation
from helmdash.operations.recording.client_events import (
    HookAnswer,
    take_claude_hook,
)

router = Router()


@route(
    router,
    "POST",
    "/hooks/claude-code",
    tag="conversations",
    scope="record",
    once=Once(),
    body=ClaudeHookIn,
    body_examples={
        "a compaction": examples.HOOK_COMPACTION,
        "a status line": examples.HOOK_STATUS,
    },
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="What became of it.", shape=HookAnswer)},
)
def claude_code_hook(request: HttpRequest) -> HttpResponse:
    """Take a hook of Claude Code, or what its status line is given.

    Compactions open a round, a turn that the client refused by itself is on the timeline and a
    reason to look. A status line tells the window that the client counts on, and is answered with
    the conversation's light. Of other hooks nothing is kept.
    """
    body = read_body(request, CLAUDE_HOOK)
    try:
        told = take_claude_hook(project=access_of(request).project, body=body, now=timezone.now())
    except HookProblem as problem:
        field, _, words = str(problem).partition(": ")
        raise invalid_field(field, words) from None
    except NoConversation as problem:
        raise not_found(str(problem)) from None
    return answer(told)
