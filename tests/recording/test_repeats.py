"""Repeats: a call is recorded once, and every repeat gets the answer of the first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from helmdash.core.budgets.levels import Level
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.records.call_names import delete_names, find_places
from helmdash.records.models import Budget, Call, CallName, Conversation
from tests.factories import NOW, make_capture
from tests.recording.support import CRITICAL, conversation, make_ruled_project, prompt, record


def test_a_repeat_is_answered_as_the_first_time(project: ProjectInfo) -> None:
    (first,) = record(project, make_capture(id="one", finish_reason="max_tokens", content="{"))
    record(project, make_capture(id="two"))

    (again,) = record(project, make_capture(id="one", finish_reason="max_tokens", content="{"))

    assert again == replace(first, duplicate=True)
    assert Call.objects.count() == 2


@pytest.mark.parametrize(
    "said",
    [
        # masked before it is stored
        "Incorrect API key provided: sk-abcdefghijklmnopqrstuvwxyz012345",
        # cut before it is stored
        "no such key: " + "é" * 3_000,
    ],
)
def test_a_cause_is_told_the_first_time_as_it_is_kept(project: ProjectInfo, said: str) -> None:
    refused = make_capture(
        id="one", usage=None, status="error", http_status=401, error_message=said
    )
    (first,) = record(project, refused)

    (again,) = record(project, refused)

    kept = calls.find(project_id=project.id, call_id="one")
    assert kept is not None
    assert first.cause is not None
    assert again == replace(first, duplicate=True)
    assert kept.call.cause == first.cause
    assert "sk-abc" not in first.cause.detail


def test_a_repeat_with_another_body_changes_nothing(project: ProjectInfo) -> None:
    (first,) = record(project, prompt(CRITICAL, id="one"))

    (again,) = record(
        project,
        prompt(10, id="one", model="anthropic/claude-sonnet-4", conversation="talk"),
        now=NOW + timedelta(hours=1),
    )

    assert again == replace(first, duplicate=True)
    row = conversation(project)
    assert (row.generation, row.level, row.model) == (1, "critical", "openai/gpt-4o")
    assert row.latest_at == NOW


def test_a_repeat_that_names_another_conversation_does_not_make_it(project: ProjectInfo) -> None:
    record(project, make_capture(id="one"))

    (again,) = record(project, make_capture(id="one", conversation="elsewhere"))

    assert again.conversation == "talk"
    assert list(Conversation.objects.values_list("name", flat=True)) == ["talk"]


def test_a_repeat_inside_one_batch_is_stored_once(project: ProjectInfo) -> None:
    first, other, again = record(
        project,
        make_capture(id="one"),
        make_capture(id="two"),
        make_capture(id="one", conversation="elsewhere"),
    )

    assert again == replace(first, duplicate=True)
    assert (first.duplicate, other.duplicate, other.generation) == (False, False, 2)
    assert list(Conversation.objects.values_list("name", flat=True)) == ["talk"]


def test_new_and_repeated_calls_of_a_batch_keep_the_numbers_gapless(project: ProjectInfo) -> None:
    record(project, make_capture(id="a"), make_capture(id="b"))

    answers = record(
        project,
        make_capture(id="c"),
        make_capture(id="a"),
        make_capture(id="d"),
        make_capture(id="c"),
    )

    assert [(r.id, r.generation, r.duplicate) for r in answers] == [
        ("c", 3, False),
        ("a", 1, True),
        ("d", 4, False),
        ("c", 3, True),
    ]
    assert conversation(project).generation == 4


def test_the_first_verdict_stands_when_the_budget_has_changed_since(project: ProjectInfo) -> None:
    (first,) = record(project, prompt(50_000, id="one"))
    budget = Budget.objects.get(key="openai/gpt-4o")
    budget.context_length = 40_000
    budget.save()

    (again,) = record(project, prompt(50_000, id="one"))
    (new,) = record(project, prompt(50_000, id="two"))

    assert again.health == first.health
    assert new.health.level is Level.CRITICAL


def test_ids_are_compared_exactly(project: ProjectInfo) -> None:
    answers = record(project, make_capture(id="One"), make_capture(id="one"))

    assert [answer.duplicate for answer in answers] == [False, False]


def test_an_id_belongs_to_its_project(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other")
    record(project, make_capture(id="one"))

    (answer,) = record(stranger, make_capture(id="one"))

    assert not answer.duplicate


def test_a_call_is_known_by_its_second_name(project: ProjectInfo) -> None:
    (first,) = record(project, make_capture(id="one"))
    one = CallName.objects.get()
    CallName.objects.create(
        project_id=project.id, name="two", call_id=one.call_id, started_at=one.started_at
    )

    (again,) = record(project, make_capture(id="two"))

    assert again == replace(first, id="two", duplicate=True)
    found = calls.find(project_id=project.id, call_id="two")
    assert found is not None
    assert found.call.id == "one"


def test_a_name_that_outlived_its_call_is_free(project: ProjectInfo) -> None:
    record(project, make_capture(id="one"))
    Call.objects.all().delete()

    (answer,) = record(project, make_capture(id="one"))

    assert (answer.duplicate, answer.generation) == (False, 2)
    assert CallName.objects.get().call_id == Call.objects.get().pk


def test_a_name_that_another_writer_has_just_taken_is_not_forgotten(project: ProjectInfo) -> None:
    """Of two that bring a name whose call is gone, the second would store the call once more."""
    record(project, make_capture(id="one"))
    Call.objects.all()._raw_delete("default")
    seen = find_places(project.id, ["one"])
    record(project, make_capture(id="one"))

    delete_names(project.id, seen)

    assert find_places(project.id, ["one"]).keys() == {"one"}
    assert find_places(project.id, ["one"]) != seen
