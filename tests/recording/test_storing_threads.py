"""Threads that store small groups of one project at once, which tell of each other's calls, begin
the same conversations and learn the same windows: nothing is lost, doubled or mixed up."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import pytest

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, CallName, Conversation, LearnedWindow, StoredMessage
from helmdash.records.statements.direct import is_postgres
from tests.recording.chats import nameless
from tests.recording.support import at_once, make_ruled_project, prompt, record, storing
from tests.recording.test_round_trips import booked, said

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="on SQLite one writes at a time"),
    pytest.mark.django_db(transaction=True),
]

THREADS, GROUPS = 4, 12
WINDOW = "This model's maximum context length is 16384 tokens. You sent 20000."


def group(thread: int, number: int) -> list[Capture]:
    """A call by the gateway, and another thread's as its client tells of it; with some more."""
    other = (thread + 1) % THREADS
    own = f"{thread}-{number}"
    more: list[list[Capture]] = [
        [prompt(6, id=f"new {own}", conversation=f"begun {number}", messages=said("a", own))],
        [prompt(7, id=f"old {own}", conversation="old", messages=said("a"))],
        [refused(f"full {own}", ""), refused(f"told {own}", WINDOW)],
        [nameless(f"Please look at {own}", id=f"chat {own}"), Capture(model="m", id=f"lone {own}")],
    ]
    return [
        *more[(thread + number) % len(more)],
        joined(f"gateway {own}", f"reply {own}", number, CallRoute.GATEWAY),
        joined(f"span {other}", f"reply {other}-{number}", number, CallRoute.OTLP_SPAN),
    ]


def refused(name: str, words: str) -> Capture:
    return prompt(
        None,
        id=name,
        conversation=name,
        status="error",
        http_status=400,
        finish_reason=None,
        error_message=words,
    )


def joined(name: str, reply: str, number: int, route: CallRoute) -> Capture:
    return prompt(
        8,
        id=f"{name} {number}",
        conversation=f"joined {number}",
        also_known=(reply,),
        routes=(route,),
    )


def test_what_threads_store_at_once_is_what_one_stores_alone() -> None:
    together = make_ruled_project(payload="full")
    apart = make_ruled_project(slug="apart", name="Apart", payload="full")
    for project in (together, apart):
        record(project, refused("first", WINDOW))
    # Where one fails the others do not wait for it.
    begin = threading.Barrier(THREADS, timeout=20)

    def store(thread: int) -> None:
        def work() -> None:
            for number in range(GROUPS):
                begin.wait()
                record(together, *group(thread, number), also=booked)

        storing(work)

    at_once([partial(store, thread) for thread in range(THREADS)])
    for number in range(GROUPS):
        for thread in range(THREADS):
            for capture in group(thread, number):
                record(apart, capture)

    assert told_of(together) == told_of(apart)
    assert are_numbered(together)


def told_of(project: ProjectInfo) -> Sequence[object]:
    """What does not hang on who came first."""
    names: dict[int, list[str]] = defaultdict(list)
    for number, name in CallName.objects.filter(project_id=project.id).values_list(
        "call_id", "name"
    ):
        names[number].append(name)
    calls = [
        (
            sorted(names[row.pk]),
            row.conversation.name if row.conversation else None,
            sorted((row.routes or "").split()),
            (row.prompt_tokens, row.cause, row.level, row.limit_tokens),
        )
        for row in Call.objects.filter(project_id=project.id).select_related("conversation")
    ]
    talks = Conversation.objects.filter(project_id=project.id)
    windows = LearnedWindow.objects.filter(project_id=project.id)
    messages = StoredMessage.objects.filter(project_id=project.id)
    return [
        sorted(calls, key=str),
        sorted(talks.values_list("name", "generation", "failures", "level")),
        sorted(windows.values_list("model_key", "source", "tokens")),
        sorted(map(str, messages.values_list("body", flat=True))),
    ]


def are_numbered(project: ProjectInfo) -> bool:
    """Whether the calls of each conversation have all numbers from 1 to its newest."""
    found: dict[int, list[int]] = defaultdict(list)
    numbered = Call.objects.filter(project_id=project.id, generation__isnull=False)
    for talk, generation in numbered.values_list("conversation_id", "generation"):
        found[talk or 0].append(generation or 0)
    talks = Conversation.objects.filter(project_id=project.id)
    return all(
        sorted(found[pk]) == [*range(1, newest + 1)]
        for pk, newest in talks.values_list("id", "generation")
    )
