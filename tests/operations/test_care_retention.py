"""How long care is kept: with its conversation; texts that wait a month at most."""

from __future__ import annotations

from datetime import timedelta

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.operations.demo.loading import remove_demo
from helmdash.operations.retention.expired import delete_expired, forget_pending
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Conversation, Guidance, PendingPrompt, Project, Reminder
from tests.factories import NOW
from tests.operations.care_support import Talk
from tests.recording.support import CRITICAL, make_ruled_project


def cared_for(project: ProjectInfo, name: str, days: float) -> Talk:
    """A conversation of so many days ago, with guidance, a reminder and a text that waits."""
    talk = Talk(project, name=name, at=NOW - timedelta(days=days))
    talk.call(CRITICAL)
    talk.turn(CRITICAL)
    talk.remind()
    talk.clear()
    talk.advance(user_prompt="Hello?")
    return talk


def test_care_goes_with_its_conversation(db: None) -> None:
    project = make_ruled_project(retention_days=10)
    cared_for(project, "old", 12)
    cared_for(project, "young", 8)

    done = delete_expired(actor=SHELL, project=project, now=NOW)

    assert done.conversations == 1
    assert {row.conversation.name for row in Guidance.objects.all()} == {"young"}
    assert {row.conversation.name for row in Reminder.objects.all()} == {"young"}
    assert [row.conversation_name for row in PendingPrompt.objects.all()] == ["young"]


@pytest.mark.parametrize(
    ("retention", "days", "kept"),
    [
        (10, 9, True),
        (10, 11, False),
        (400, 29, True),
        (400, 31, False),  # a text waits a month at most
        (None, 29, True),
        (None, 31, False),  # also where everything else is kept
    ],
)
def test_a_text_waits_as_long_as_the_project_keeps_things_and_a_month_at_most(
    db: None, retention: int | None, days: int, kept: bool
) -> None:
    project = make_ruled_project(retention_days=retention)
    stranger = make_ruled_project(slug="other", name="Other")
    cared_for(project, "talk", days)
    cared_for(stranger, "talk", 400)

    delete_expired(actor=SHELL, project=project, now=NOW)

    assert PendingPrompt.objects.filter(project_id=project.id).exists() is kept
    assert PendingPrompt.objects.filter(project_id=stranger.id).exists()


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_texts_are_forgotten_in_batches_of_any_size(db: None, batch: int) -> None:
    project = make_ruled_project()
    for number in range(5):
        cared_for(project, f"talk-{number}", 40)

    assert forget_pending(project=project, now=NOW, batch=batch) == 5


def test_the_demo_is_removed_with_its_care(db: None) -> None:
    project = make_ruled_project(slug="demo", is_demo=True)
    cared_for(project, "talk", 1)

    assert remove_demo(actor=SHELL)

    assert not Project.objects.exists()
    for model in (Conversation, Guidance, Reminder, PendingPrompt):
        assert not model.objects.exists(), model
