"""What is read about care: where a conversation stands, who needs somebody, and the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helmdash.core.budgets.levels import Level
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import care, conversations
from helmdash.queries.conversations.care import CareView, needs_attention
from helmdash.queries.conversations.timeline import timeline
from helmdash.records.models import Conversation, Project
from tests.factories import NOW
from tests.operations.care_support import Talk
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def talk_at(project: ProjectInfo, name: str, tokens: int | None, turns: int) -> Talk:
    """A conversation whose calls were all of this size, each with a step before it."""
    talk = Talk(project, name=name)
    talk.call(HEALTHY)
    talk.call(tokens)
    talk.turns(tokens, turns)
    return talk


def names(project: ProjectInfo, limit: int = 10) -> list[str]:
    found = needs_attention(project_id=project.id, now=NOW, limit=limit)
    return [each.id for each in found]


# --- one conversation


def test_a_conversation_at_rest(project: ProjectInfo) -> None:
    talk_at(project, "talk", HEALTHY, 1)

    at_rest = care.care_of(project_id=project.id, conversation="talk")

    assert at_rest == CareView(generation=3)
    assert care.care_of(project_id=project.id, conversation="nobody") == CareView()
    assert care.guidance(project_id=project.id, conversation="nobody") == ()


@pytest.mark.parametrize(
    ("tokens", "turns", "told"),
    [
        (CAUTION, 1, CareView(level=Level.CAUTION, grace_left=2, next_hard_in=3)),
        (CAUTION, 3, CareView(level=Level.CAUTION, grace_left=0, next_hard_in=1)),
        (CAUTION, 4, CareView(level=Level.CAUTION, grace_left=0, next_hard_in=10, followed=False)),
        (CRITICAL, 2, CareView(level=Level.CRITICAL, countdown=3, followed=False)),
    ],
)
def test_where_a_conversation_stands(
    project: ProjectInfo, tokens: int, turns: int, told: CareView
) -> None:
    talk_at(project, "talk", tokens, turns)
    Project.objects.update(remediation=True)

    found = care.care_of(project_id=project.id, conversation="talk")

    assert (found.level, found.grace_left, found.countdown) == (
        told.level,
        told.grace_left,
        told.countdown,
    )
    assert (found.next_hard_in, found.followed) == (told.next_hard_in, told.followed)
    assert (found.enabled, found.generation) == (True, 2 + turns)


def test_guidance_is_told_newest_first_and_no_more_than_asked_for(project: ProjectInfo) -> None:
    talk_at(project, "talk", CRITICAL, 3)

    found = care.guidance(project_id=project.id, conversation="talk", limit=2)

    assert [(each.generation, each.remaining, each.strength) for each in found] == [
        (5, 2, "critical"),
        (4, 3, "critical"),
    ]


def test_one_conversation_takes_seven_queries(
    project: ProjectInfo, django_assert_num_queries: Callable[[int], Any]
) -> None:
    talk = talk_at(project, "talk", CRITICAL, 8)
    talk.remind("Goal: ship it.")

    with django_assert_num_queries(7):
        found = conversations.find(project_id=project.id, conversation_id="talk")

    assert found is not None
    assert found.care == care.care_of(project_id=project.id, conversation="talk")
    assert found.guidance == care.guidance(project_id=project.id, conversation="talk")
    assert found.reminders == care.reminders(project_id=project.id, conversation="talk")
    assert len(found.reminders) == 1


def test_after_a_clear_the_round_is_empty_and_care_at_rest(project: ProjectInfo) -> None:
    talk = talk_at(project, "talk", CRITICAL, 2)
    talk.clear()

    found = conversations.find(project_id=project.id, conversation_id="talk")

    assert found is not None
    assert [item.is_empty for item in found.rounds] == [False, True]
    assert found.care == CareView(generation=4)
    assert found.conversation.health.level is Level.UNKNOWN
    assert found.conversation.known_level is None


@pytest.mark.parametrize("care_json", [None, [], "x", {"cadence": "x"}, {"r": 99, "l": "caution"}])
def test_a_care_that_makes_no_sense_is_at_rest(care_json: object) -> None:
    found = care.care_view(care_json, round_number=1, enabled=False)

    assert (found.level, found.countdown, found.next_hard_in) == (None, None, None)


# --- who needs somebody


def test_critical_comes_first_then_caution_then_what_was_not_followed(
    project: ProjectInfo, django_assert_num_queries: Callable[[int], Any]
) -> None:
    talk_at(project, "fine", HEALTHY, 5)
    talk_at(project, "yellow", CAUTION, 1)
    talk_at(project, "red", CRITICAL, 2)
    ignored = talk_at(project, "ignored", CAUTION, 5)
    ignored.call(None)
    followed = talk_at(project, "followed", CAUTION, 5)
    followed.remind()
    followed.call(None)
    talk_at(project, "fine before", HEALTHY, 5).call(None)
    talk_at(make_ruled_project(slug="other", name="Other"), "theirs", CRITICAL, 1)

    with django_assert_num_queries(2):
        found = needs_attention(project_id=project.id, now=NOW, limit=10)

    assert [each.id for each in found] == ["red", "yellow", "followed", "ignored"]
    assert [each.care.countdown for each in found] == [3, None, None, None]
    assert [each.is_unfollowed for each in found] == [False, False, False, True]
    assert [each.reason.value for each in found[3].attention] == ["was_caution"]


def test_a_held_level_and_a_probable_cut_need_somebody_though_their_level_is_unknown(
    project: ProjectInfo,
) -> None:
    talk_at(project, "yellow", CAUTION, 1).call(None)
    cut = talk_at(project, "cut", HEALTHY, 1)
    Conversation.objects.filter(name="cut").update(cut_generation=3)
    cut.call(None)
    # One reading below the lines does not end the countdown.
    red = talk_at(project, "red", CRITICAL, 2)
    red.call(HEALTHY)
    red.call(None)

    assert names(project) == ["red", "cut", "yellow"]
    assert care.count_needs_attention(project_id=project.id) == 3


def test_a_guidance_is_judged_when_its_generation_was_recorded(project: ProjectInfo) -> None:
    talk = talk_at(project, "talk", CAUTION, 3)
    talk.advance()

    waiting = needs_attention(project_id=project.id, now=NOW)[0]
    talk.call(CAUTION)
    judged = needs_attention(project_id=project.id, now=NOW)[0]

    assert (waiting.care.is_waiting, waiting.is_unfollowed) == (True, False)
    assert (judged.care.is_waiting, judged.is_unfollowed) == (False, True)


def test_the_newest_of_a_level_comes_first(project: ProjectInfo) -> None:
    first = talk_at(project, "first", CRITICAL, 1)
    talk_at(project, "second", CRITICAL, 2)
    first.turns(CRITICAL, 4)

    assert names(project) == ["first", "second"]
    assert names(project, limit=1) == ["first"]


def test_a_cleared_conversation_needs_nobody(project: ProjectInfo) -> None:
    talk_at(project, "talk", CRITICAL, 2).clear()

    assert names(project) == []


# --- the timeline


def events(project: ProjectInfo, limit: int = 50) -> list[list[tuple[str, int, int]]]:
    """Pages of (event, round, generation)."""
    pages, cursor = [], None
    while True:
        page = timeline(project_id=project.id, conversation_id="talk", cursor=cursor, limit=limit)
        assert page is not None
        pages.append([(each.event, each.round_number, each.generation) for each in page.items])
        cursor = page.next
        if cursor is None:
            return pages


def test_a_clear_comes_before_the_first_call_of_its_round(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.call()
    talk.call()
    talk.clear()
    at = talk.at
    talk.call()

    assert events(project) == [
        [("call", 1, 1), ("call", 1, 2), ("clear", 2, 3), ("call", 2, 3)],
    ]
    page = timeline(project_id=project.id, conversation_id="talk")
    assert page is not None
    cleared = page.items[2]
    assert (cleared.call_id, cleared.model, cleared.level, cleared.at) == (None, None, None, at)


def test_a_clear_without_a_call_after_it_is_on_the_last_page(project: ProjectInfo) -> None:
    talk = Talk(project)
    for _ in range(3):
        talk.call()
    talk.clear()

    assert events(project, limit=2) == [
        [("call", 1, 1), ("call", 1, 2)],
        [("call", 1, 3), ("clear", 2, 4)],
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_every_clear_is_told_once_on_pages_of_any_size(project: ProjectInfo, limit: int) -> None:
    talk = Talk(project)
    for _ in range(3):
        talk.call()
        talk.call()
        talk.clear()

    told = [event for page in events(project, limit=limit) for event in page]

    assert told == [
        *[("call", 1, 1), ("call", 1, 2), ("clear", 2, 3)],
        *[("call", 2, 3), ("call", 2, 4), ("clear", 3, 5)],
        *[("call", 3, 5), ("call", 3, 6), ("clear", 4, 7)],
    ]
