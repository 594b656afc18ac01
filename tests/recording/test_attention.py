"""Which conversations need somebody, and why: full, failing or cut."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from helmdash.core.access.permissions import SHELL
from helmdash.core.agents.claude_hooks import ClientEvent, ClientEventKind
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.attention import AttentionReason, rank_of
from helmdash.operations import triage
from helmdash.operations.care.clearing import clear
from helmdash.operations.recording.client_events import note_events
from helmdash.operations.triage import SNOOZE, Word, is_any_over, wake
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import conversations, listing
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records import models
from helmdash.records.models import Conversation
from tests.factories import NOW
from tests.operations.care_support import Talk
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, conversation, prompt, record


def ok(tokens: int | None = HEALTHY, **over: Any) -> Capture:
    return prompt(tokens, **over)


def failed(tokens: int | None = None) -> Capture:
    return prompt(tokens, http_status=500, finish_reason=None)


def say(project: ProjectInfo, word: Word, at: datetime) -> None:
    triage.say(actor=SHELL, project=project, conversation="talk", word=word, now=at)


def reasons(project: ProjectInfo) -> list[str]:
    """What the API says of the conversation."""
    found = conversations.standing(project_id=project.id, conversation_id="talk")
    assert found is not None
    return [each.reason.value for each in found.attention]


def kept(row: Conversation) -> tuple[object, ...]:
    return (
        *(row.attention, row.recent_failures, row.latest_cause),
        *(row.cut_generation, row.held_level),
    )


# One row for each way to need somebody, and for each end of it.
STANDINGS: dict[str, tuple[list[Capture], list[str]]] = {
    "healthy": ([ok(), ok()], []),
    "full": ([ok(CRITICAL)], ["critical"]),
    "caution": ([ok(CAUTION)], ["caution"]),
    "unknown after critical": ([ok(CRITICAL), ok(None)], ["was_critical"]),
    "unknown after caution": ([ok(CAUTION), ok(None)], ["was_caution"]),
    "unknown all along": ([ok(None)], []),
    "newest failed": ([ok(), failed()], ["newest_failed"]),
    "failed, then well": ([failed(), ok()], []),
    "two of five": ([failed(), failed(), ok(), ok(), ok()], []),
    "three of five": ([failed(), failed(), failed(), ok(), ok()], ["often_failed"]),
    "three of six": ([failed(), failed(), failed(), ok(), ok(), ok()], []),
    "three of three": ([failed()] * 3, ["often_failed", "newest_failed"]),
    "full and failing": ([ok(CRITICAL), failed(CRITICAL)], ["critical", "newest_failed"]),
}


@pytest.mark.parametrize("name", STANDINGS)
def test_full_and_failing_conversations_need_somebody(project: ProjectInfo, name: str) -> None:
    calls, expected = STANDINGS[name]
    for call in calls:
        record(project, call)

    assert reasons(project) == expected
    row = conversation(project)
    assert bool(row.attention) == bool(expected)
    assert row.attention == rank_of(row)


def test_each_reason_is_told_in_words(project: ProjectInfo) -> None:
    for call in (ok(CRITICAL), failed(), failed(), failed(), ok(CAUTION)):
        record(project, call)
    Conversation.objects.update(cut_generation=1_234)

    (view,) = listing.page(project_id=project.id, filters=ConversationFilters()).items

    assert [each.detail for each in view.attention] == [
        "3 of the last 5 calls failed",
        "the prompt of generation 1,234 was probably cut upstream",
        "1 over its caution line of 100,000",
    ]


def test_a_level_that_care_holds_is_not_told_as_the_one_last_known(project: ProjectInfo) -> None:
    record(project, ok(), ok(None))
    Conversation.objects.update(held_level="caution", known_level="healthy", attention=1)

    (view,) = listing.page(project_id=project.id, filters=ConversationFilters()).items

    (told,) = view.attention
    assert told.detail == "care still counts it as caution"


def test_a_clear_leaves_all_of_it_behind(project: ProjectInfo) -> None:
    record(project, ok(CRITICAL), failed())
    Conversation.objects.update(cut_generation=2)

    clear(actor=SHELL, project=project, conversation="talk", now=NOW)
    empty = reasons(project)
    record(project, ok())

    assert empty == reasons(project) == []


def test_what_was_there_before_is_judged_like_what_is_recorded(project: ProjectInfo) -> None:
    """The migration leaves what recording would have left."""
    for name, (calls, _) in STANDINGS.items():
        for call in calls:
            record(project, replace(call, conversation=name))
    told = {row.name: kept(row) for row in Conversation.objects.all()}
    Conversation.objects.update(
        attention=0, recent_failures=0, latest_cause=None, cut_generation=None, held_level=None
    )

    migration = import_module("helmdash.records.migrations.0017_attention")
    migration.judge_what_is_there(apps, SimpleNamespace(connection=connection))

    assert {row.name: kept(row) for row in Conversation.objects.all()} == told
    assert len(set(told.values())) > len(AttentionReason) - 2


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by what it counted")
@pytest.mark.parametrize("statement", ["FAILURES", "CAUSES"])
def test_each_conversation_is_judged_by_its_own_calls(db: None, statement: str) -> None:
    """The migration walks through all calls for none of them: that would take hours."""
    migration = import_module("helmdash.records.migrations.0017_attention")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {getattr(migration, statement)}")
        plan = [detail for *_, detail in cursor.fetchall()]

    asked = [detail for detail in plan if " c " in detail]
    assert asked
    assert all("SEARCH" in each and "conversation_id=?" in each for each in asked), plan


# --- what people say


def test_what_is_done_needs_nobody_until_a_call_gives_a_reason_again(
    project: ProjectInfo,
) -> None:
    record(project, failed(), failed(), failed())
    Conversation.objects.update(cut_generation=2)

    say(project, Word.DONE, NOW)
    done = reasons(project)
    record(project, ok())
    well = reasons(project)
    record(project, failed())

    assert done == well == []
    assert reasons(project) == ["newest_failed"]


def test_a_snooze_ends_with_its_hour_and_with_anything_worse(project: ProjectInfo) -> None:
    record(project, failed())

    def snooze_and_call(*calls: Capture, after: timedelta = timedelta(minutes=1)) -> list[str]:
        say(project, Word.SNOOZED, NOW)
        assert reasons(project) == []
        record(project, *(replace(call, started_at=NOW + after) for call in calls))
        found = reasons(project)
        say(project, Word.OPEN, NOW)
        return found

    assert snooze_and_call(failed()) == []
    assert snooze_and_call(ok(CRITICAL)) == ["critical"]
    assert snooze_and_call(ok(CRITICAL), after=SNOOZE) == ["critical"]
    say(project, Word.SNOOZED, NOW)
    assert (is_any_over(NOW), wake(now=NOW), reasons(project)) == (False, 0, [])
    assert (is_any_over(NOW + SNOOZE), wake(now=NOW + SNOOZE)) == (True, 1)
    assert (wake(now=NOW + SNOOZE), reasons(project)) == (0, ["critical"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (failed(), "newest_failed"),
        (ok(2_050, model="ollama/llama3.1:8b", sent=SentSizes(bytes=90_000)), "suspected_cut"),
    ],
)
def test_a_snoozed_conversation_comes_back_with_trouble_of_another_kind(
    project: ProjectInfo, call: Capture, told: str
) -> None:
    record(project, ok(CRITICAL))
    say(project, Word.SNOOZED, NOW)
    record(project, replace(ok(CRITICAL), started_at=NOW + timedelta(minutes=1)))
    more_of_it = reasons(project)

    record(project, replace(call, started_at=NOW + timedelta(minutes=2)))

    assert more_of_it == []
    assert told in reasons(project)


@pytest.mark.parametrize("word", [Word.DONE, Word.SNOOZED])
@pytest.mark.parametrize(
    ("first", "better", "told"),
    [
        (CRITICAL, CRITICAL + 1, []),  # no call came, and nothing is worse
        (CAUTION, CAUTION + 1, []),
        (CAUTION, CRITICAL, ["critical"]),  # nobody has seen that
        (HEALTHY, CRITICAL, ["critical"]),
    ],
)
def test_what_was_put_aside_stays_so_when_another_door_tells_of_the_same_call(
    project: ProjectInfo, word: Word, first: int, better: int, told: list[str]
) -> None:
    same = {"id": "anthropic:req_1", "model": "openai/gpt-4o"}
    record(project, ok(first, routes=(CallRoute.TRANSCRIPT,), **same))
    say(project, word, NOW)

    record(project, ok(better, routes=(CallRoute.OTLP_LOG,), **same))

    row = conversation(project)
    assert row.prompt_tokens == better
    assert reasons(project) == told
    assert (row.snoozed_until is None) == (word is Word.DONE or bool(told))


@pytest.mark.parametrize(
    ("minutes", "is_news"),
    [
        (1, True),
        (0, True),
        (-10, True),  # the clock of a client may be slow
        (-11, False),  # its conversation went on since, whoever is late to tell it
    ],
)
def test_a_refusal_that_is_told_long_after_its_conversation_went_on_is_no_news(
    project: ProjectInfo, minutes: int, is_news: bool
) -> None:
    record(project, ok(CRITICAL))
    say(project, Word.SNOOZED, NOW)
    refusal = ClientEvent(kind=ClientEventKind.REFUSAL, conversation="talk", key="r", detail="full")

    note_events(project=project, events=[(refusal, NOW + timedelta(minutes=minutes))])

    assert reasons(project) == (["client_refusal", "critical"] if is_news else [])
    assert models.ClientEvent.objects.count() == 1  # on the timeline it is in any case


def test_what_was_done_stays_so_when_care_begins_to_count_it(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.call(CRITICAL)
    say(project, Word.DONE, NOW)

    talk.advance()
    done = reasons(project)
    talk.call(CRITICAL)

    assert done == []
    assert reasons(project) == ["critical"]
