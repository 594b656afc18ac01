"""A sub-agent's first name, by its kind, leads what is written to its conversation as well.

Reads went there already; a reminder, a clear or a word of a person's by that name met a 404, and
the step before a generation knew of no call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL, Person
from helmdash.core.calls.routes import CallRoute
from helmdash.operations import care, triage
from helmdash.operations.care import NoConversation
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import (
    AuditEntry,
    Conversation,
    Guidance,
    PendingPrompt,
    Reminder,
    TriageWord,
)
from tests.factories import NOW
from tests.operations.care_support import Talk, short
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project

KIND, AGENT = "s-1:agent:builtin:Explore", "s-1:a1"
ROOT = Person(name="root", is_superuser=True)


def _told(talk: Talk, tokens: int = HEALTHY) -> None:
    """A call of the sub-agent, by a log record that knows its kind alone."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 9}
    talk.call(**_turn(CallRoute.OTLP_LOG, KIND), usage=usage)


def _named(talk: Talk, tokens: int = HEALTHY) -> None:
    """The same call by the span, which knows the agent's id."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 9}
    talk.call(**_turn(CallRoute.OTLP_SPAN, AGENT), usage=usage)


def _turn(route: CallRoute, name: str) -> dict[str, Any]:
    return {
        "id": "anthropic:req_1",
        "conversation": name,
        "parent": "s-1",
        "client_name": "claude-code",
        "routes": (route,),
        "started_at": NOW,
    }


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


@pytest.fixture
def former(project: ProjectInfo) -> Talk:
    """Goes by the former name of a conversation that is called by its agent's id by now."""
    talk = Talk(project, KIND)
    _told(talk, CAUTION)
    _named(talk, CAUTION)
    assert Conversation.objects.get(generation__gte=1).name == AGENT
    return talk


WRITES: dict[str, Callable[[Talk], object]] = {
    "add": lambda talk: talk.remind("Goal: ship it."),
    "change": lambda talk: care.update_reminder(
        actor=ROOT,
        project=talk.project,
        conversation=KIND,
        reminder_id=Talk(talk.project, AGENT).remind("Goal: find it."),
        content="Goal: ship it.",
        now=talk.tick(),
    ),
    "clear": lambda talk: talk.clear(reminder_content="Goal: ship it."),
}


@pytest.mark.parametrize("write", WRITES)
def test_reminders_by_the_former_name_are_the_agents(former: Talk, write: str) -> None:
    WRITES[write](former)

    row = Reminder.objects.select_related("conversation").get()
    assert (row.conversation.name, row.content) == (AGENT, "Goal: ship it.")
    assert not Conversation.objects.filter(name=KIND).exists()


def test_a_reminder_is_deleted_by_the_former_name(former: Talk) -> None:
    number = Talk(former.project, AGENT).remind()

    care.delete_reminder(
        actor=ROOT, project=former.project, conversation=KIND, reminder_id=number, now=NOW
    )

    assert not Reminder.objects.exists()
    # Told by what the conversation is called now, by which its other entries are found.
    deleted = AuditEntry.objects.get(action="note deleted")
    assert deleted.subject == AGENT


def test_a_step_by_the_former_name_counts_in_the_same_conversation(former: Talk) -> None:
    other = Talk(former.project, AGENT)

    first, again = former.advance(), other.advance()

    assert (short(first), first.generation) == ("soft", 2)
    assert (short(again), again.is_repeat) == ("soft", True)
    assert Guidance.objects.get().conversation.name == AGENT


def test_a_text_by_either_name_waits_and_is_carried(former: Talk) -> None:
    former.advance(user_prompt="What did you find?")
    Talk(former.project, AGENT).advance(user_prompt="And where?")

    cleared = former.clear()

    assert cleared.carried == ("What did you find?", "And where?")
    assert cleared.round_number == Conversation.objects.get(name=AGENT).round_number == 2


def test_a_text_that_came_before_the_id_was_known_is_carried(project: ProjectInfo) -> None:
    talk = Talk(project, KIND)
    _told(talk)
    talk.advance(user_prompt="What did you find?")
    _named(talk)

    assert not PendingPrompt.objects.filter(conversation_name=KIND).exists()
    assert Talk(project, AGENT).clear().carried == ("What did you find?",)


def test_texts_of_one_generation_by_both_names_are_kept(project: ProjectInfo) -> None:
    talk, other = Talk(project, KIND), Talk(project, AGENT)
    _told(talk)
    talk.advance(generation=2, user_prompt="What did you find?")
    other.advance(generation=2, user_prompt="And where?")
    _named(talk)

    assert other.clear().carried == ("What did you find?", "And where?")


def test_a_person_goes_by_the_former_name_as_well(former: Talk) -> None:
    triage.say(
        actor=ROOT,
        project=former.project,
        conversation=KIND,
        word=triage.Word.NOTE,
        text="Seen.",
        now=NOW,
    )
    assert not care.go_on(actor=ROOT, project=former.project, conversation=KIND)
    care.clear(actor=ROOT, project=former.project, conversation=KIND, now=former.tick())

    assert TriageWord.objects.get().conversation.name == AGENT
    told = AuditEntry.objects.filter(kind="conversation").values_list("action", "subject")
    assert set(told) == {("note", AGENT), ("cleared", AGENT)}


def test_a_name_that_another_conversation_has_by_now_leads_to_that(former: Talk) -> None:
    former.call(CRITICAL)

    former.remind("Mine.")

    assert Reminder.objects.get().conversation.name == KIND


def test_a_name_that_nobody_had_is_nobodys(former: Talk) -> None:
    stranger = Talk(former.project, "s-1:agent:builtin:Plan")

    assert stranger.advance().reason == "No call of this conversation is known yet."
    with pytest.raises(NoConversation):
        stranger.remind()
    with pytest.raises(NoConversation):
        stranger.clear()
    with pytest.raises(NoConversation):
        care.go_on(actor=SHELL, project=former.project, conversation=stranger.name)
