"""Care from several workers at once, each with a connection of its own: counted once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import pytest
from django.db import connection

from helmdash.core.access.permissions import SHELL
from helmdash.operations.care import pending_prompts
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.queries.conversations.care import care_of, reminders
from helmdash.records.access.secrets import unseal
from helmdash.records.models import Guidance, PendingPrompt, Reminder, Round
from tests.operations.care_support import Talk, short
from tests.recording.support import CRITICAL, HEALTHY, at_once, make_ruled_project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(transactional_db: None) -> Talk:
    """Its newest call is critical, and nothing was said about it yet."""
    talk = Talk(make_ruled_project())
    talk.turns(HEALTHY, 2)
    talk.turn(CRITICAL)
    return talk


def test_two_workers_count_a_generation_once(talk: Talk) -> None:
    for left in range(4, -1, -1):
        told = at_once([partial(talk.advance, generation=8 - left)] * 4)

        assert {short(each) for each in told} == {str(left)}
        assert [each.is_repeat for each in told].count(False) == 1
        assert len({each.text for each in told}) == 1
        talk.call(CRITICAL)
    assert Guidance.objects.count() == 5


def test_two_workers_clear_once(talk: Talk) -> None:
    talk.turns(CRITICAL, 5)

    told = at_once([partial(talk.advance, generation=9, user_prompt="Go on.")] * 4)

    assert [each.action for each in told] == ["clear"] * 4
    assert {each.round_number for each in told} == {2}
    assert len({each.package for each in told}) == 1
    assert {each.carry for each in told} == {("Go on.",)}
    assert Round.objects.count() == 2


def test_clears_asked_for_at_once_open_one_round(talk: Talk) -> None:
    told = at_once([talk.clear] * 4)

    assert {each.round_number for each in told} == {2}
    assert [each.is_new for each in told].count(True) == 1


def test_a_clear_and_the_end_of_the_countdown_meet_in_one_round(talk: Talk) -> None:
    talk.turns(CRITICAL, 5)

    jobs: list[Callable[[], object]] = [talk.clear, partial(talk.advance, generation=9)]
    at_once(jobs)

    assert Round.objects.count() == 2


def test_calls_reports_and_steps_at_once_leave_sound_rows(talk: Talk) -> None:
    jobs: list[Callable[[], object]] = [
        *[partial(talk.call, CRITICAL)] * 3,
        *[talk.advance] * 3,
        partial(talk.remind, "a"),
        partial(talk.remind, "b"),
    ]

    at_once(jobs)

    standing = care_of(project_id=talk.project.id, conversation="talk")
    counted = Guidance.objects.filter(action="record_prompt").count()
    assert standing.countdown == 5 - counted
    assert Round.objects.get().latest_generation == 6


def test_reminders_added_at_once_have_no_gap(talk: Talk) -> None:
    at_once([partial(talk.remind, str(n), position=1) for n in range(8)])

    found = reminders(project_id=talk.project.id, conversation="talk")

    assert found is not None
    assert [each.position for each in found] == list(range(1, 9))
    assert Reminder.objects.count() == 8


def test_first_texts_from_two_workers_are_kept_once(talk: Talk) -> None:
    new = Talk(talk.project, name="new")

    at_once([partial(new.advance, user_prompt="Hello.")] * 4)

    assert PendingPrompt.objects.count() == 1


def test_first_texts_that_differ_are_all_kept(talk: Talk) -> None:
    for number in range(8):
        new = Talk(talk.project, name=f"new-{number}")
        texts = {f"Text {n}." for n in range(4)}

        at_once([partial(new.advance, user_prompt=text) for text in texts])

        new.call(status="error", http_status=500)
        assert set(new.clear().carried) == texts


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_a_text_comes_again_while_its_conversation_is_erased(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Talk(talk.project, name="new")
    new.advance(user_prompt="Hello.")
    erase = partial(
        erase_conversation,
        actor=SHELL,
        project=talk.project,
        conversation="new",
        now=new.tick(),
    )
    erased = list[Future[object]]()

    def unseal_late(sealed: str) -> str | None:
        if not erased:
            erased.append(threads.submit(at_once, [erase]))
            wait(erased, timeout=1)
        return unseal(sealed)

    monkeypatch.setattr(pending_prompts, "unseal", unseal_late)
    with ThreadPoolExecutor(1) as threads:
        assert new.advance(user_prompt="Hello.").action == "none"
        erased[0].result()
    assert PendingPrompt.objects.count() <= 1
