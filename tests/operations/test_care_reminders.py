"""Reminders: positions without gaps, contents that can be stored, and what they do to care."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helmdash.core.access.permissions import SHELL
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care import reminders
from helmdash.records.models import Guidance, Reminder, Round
from tests.factories import NOW
from tests.operations.care_support import Talk
from tests.recording.support import CAUTION, HEALTHY, make_ruled_project


@pytest.fixture
def talk(db: None) -> Talk:
    talk = Talk(make_ruled_project())
    talk.call(HEALTHY)
    return talk


def listed(project: ProjectInfo, name: str = "talk") -> list[str]:
    found = reminders(project_id=project.id, conversation=name)
    assert found is not None
    assert [each.position for each in found] == list(range(1, len(found) + 1))
    return [each.content for each in found]


@pytest.mark.parametrize(
    ("position", "order"),
    [
        (None, ["a", "b", "new"]),  # at the end
        (1, ["new", "a", "b"]),
        (2, ["a", "new", "b"]),
        (3, ["a", "b", "new"]),  # n + 1
        (99, ["a", "b", "new"]),  # cut to n + 1
        (0, ["new", "a", "b"]),  # cut to 1
        (-5, ["new", "a", "b"]),
    ],
)
def test_a_reminder_is_added_at_its_position(
    talk: Talk, position: int | None, order: list[str]
) -> None:
    talk.remind("a")
    talk.remind("b")
    talk.remind("new", position=position)

    assert listed(talk.project) == order


@pytest.mark.parametrize(
    ("position", "order"),
    [(1, ["c", "a", "b"]), (2, ["a", "c", "b"]), (3, ["a", "b", "c"]), (9, ["a", "b", "c"])],
)
def test_a_reminder_is_moved(talk: Talk, position: int, order: list[str]) -> None:
    _, _, last = (talk.remind(content) for content in "abc")

    moved = care.update_reminder(
        actor=SHELL,
        project=talk.project,
        conversation="talk",
        reminder_id=last,
        position=position,
        now=NOW,
    )

    assert listed(talk.project) == order
    assert moved.position == min(position, 3)


def test_a_reminder_is_changed_in_its_place(talk: Talk) -> None:
    first, _ = talk.remind("a"), talk.remind("b")
    at = talk.tick()

    changed = care.update_reminder(
        actor=SHELL,
        project=talk.project,
        conversation="talk",
        reminder_id=first,
        content=" A\n",
        kind="re_entry",
        now=at,
    )

    assert (changed.id, changed.position, changed.kind) == (first, 1, "re_entry")
    assert (changed.content, changed.updated_at) == ("A", at)
    assert listed(talk.project) == ["A", "b"]


def test_a_deleted_reminder_leaves_no_gap(talk: Talk) -> None:
    ids = [talk.remind(content) for content in "abc"]

    care.delete_reminder(
        actor=SHELL, project=talk.project, conversation="talk", reminder_id=ids[0], now=NOW
    )

    assert listed(talk.project) == ["b", "c"]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.tuples(st.sampled_from("amd"), st.integers(-2, 9)), max_size=12))
def test_positions_have_no_gap_whatever_is_done(talk: Talk, steps: list[tuple[str, int]]) -> None:
    Reminder.objects.all().delete()
    ids: list[str] = []
    common = {"project": talk.project, "conversation": "talk", "now": NOW}
    for kind, number in steps:
        if kind == "a" or not ids:
            ids.append(talk.remind(str(number), position=number))
        elif kind == "m":
            moved = ids[number % len(ids)]
            care.update_reminder(actor=SHELL, **common, reminder_id=moved, position=number)  # type: ignore[arg-type]
        else:
            gone = ids.pop(number % len(ids))
            care.delete_reminder(actor=SHELL, **common, reminder_id=gone)  # type: ignore[arg-type]

    assert len(listed(talk.project)) == len(ids)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("x" * 20_001, "20,000"),
        ("a\0b", "U+0000"),
        ("half \ud83d", "surrogate"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(talk: Talk, content: str, word: str) -> None:
    with pytest.raises(care.CareProblem, match=word.replace("+", r"\+")) as caught:
        talk.remind(content)

    assert caught.value.field == "content"
    assert not Reminder.objects.exists()


def test_the_longest_content_is_taken_after_trimming(talk: Talk) -> None:
    talk.remind(" " + "x" * 20_000 + "\n")

    assert listed(talk.project) == ["x" * 20_000]


def test_an_unknown_kind_is_refused(talk: Talk) -> None:
    with pytest.raises(care.CareProblem, match="note, re_entry"):
        talk.remind(kind="memo")


def test_a_conversation_has_two_hundred_reminders_at_most(talk: Talk) -> None:
    for number in range(199):
        Reminder.objects.create(
            project_id=talk.project.id,
            conversation_id=Round.objects.get().conversation_id,
            name=f"r{number}",
            position=number + 1,
            content=str(number),
            created_at=NOW,
            updated_at=NOW,
        )
    talk.remind("the last")

    with pytest.raises(care.CareProblem, match="200"):
        talk.remind("one more")


def test_who_is_not_known_is_said(talk: Talk) -> None:
    known = talk.remind()
    nobody = {"project": talk.project, "conversation": "nobody", "now": NOW}
    stranger = Talk(make_ruled_project(slug="other", name="Other"))
    stranger.call(HEALTHY)

    with pytest.raises(care.NoConversation):
        talk.remind(conversation="nobody")
    with pytest.raises(care.NoConversation):
        care.delete_reminder(actor=SHELL, **nobody, reminder_id=known)  # type: ignore[arg-type]
    with pytest.raises(care.NoReminder):
        care.update_reminder(
            actor=SHELL,
            project=talk.project,
            conversation="talk",
            reminder_id="r",
            content="x",
            now=NOW,
        )
    with pytest.raises(care.NoReminder):
        care.delete_reminder(
            actor=SHELL, project=stranger.project, conversation="talk", reminder_id=known, now=NOW
        )
    assert reminders(project_id=talk.project.id, conversation="nobody") is None


@pytest.mark.parametrize("how", ["add", "update", "delete"])
def test_every_write_follows_the_guidance_of_the_open_round(talk: Talk, how: str) -> None:
    known = talk.remind()
    talk.turn(CAUTION)
    talk.turns(CAUTION, 4)
    common = {"project": talk.project, "conversation": "talk", "now": talk.tick()}

    if how == "add":
        care.add_reminder(actor=SHELL, **common, content="b")  # type: ignore[arg-type]
    elif how == "update":
        care.update_reminder(actor=SHELL, **common, reminder_id=known, content="c")  # type: ignore[arg-type]
    else:
        care.delete_reminder(actor=SHELL, **common, reminder_id=known)  # type: ignore[arg-type]

    assert {row.followed_at for row in Guidance.objects.all()} == {talk.at}
    assert Guidance.objects.count() == 4


def test_an_update_that_says_nothing_follows_nothing(talk: Talk) -> None:
    known = talk.remind()
    talk.turn(CAUTION)
    talk.turn(CAUTION)

    care.update_reminder(
        actor=SHELL, project=talk.project, conversation="talk", reminder_id=known, now=NOW
    )

    assert Guidance.objects.get().followed_at is None
