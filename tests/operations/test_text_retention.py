"""Texts that are older than a project wants go; every figure stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command

from helmdash.core.access.permissions import SHELL, Forbidden, MemberRole, Person
from helmdash.core.calls.withheld import NOT_KEPT
from helmdash.operations import care
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.operations.retention.expired_texts import TextsGone, count_old_texts, delete_old_texts
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.conversations import conversations
from helmdash.records.models import (
    Call,
    CallPayload,
    Fit,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Project,
    Reminder,
    Round,
    StoredMessage,
)
from tests.factories import NOW, make_capture
from tests.plan_rows import add_attempt, make_plan
from tests.recording.support import make_ruled_project, record

SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """Keeps calls for ever and texts for ten days."""
    return make_ruled_project(payload="full", text_days=10)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def say(project: ProjectInfo, days: float, name: str, **over: Any) -> None:
    given: dict[str, Any] = {
        "id": name,
        "conversation": f"of-{name}",
        "messages": (SYSTEM, {"role": "user", "content": name}),
        "content": f"{name} answers",
        "error_message": f"they said {name}",
        "attempts": ({"http_status": 400, "error": "bad", "message": f"about {name}"},),
        "started_at": days_ago(days),
    }
    record(project, make_capture(**{**given, **over}), now=days_ago(days))


def delete(project: ProjectInfo, **over: Any) -> TextsGone:
    return delete_old_texts(**{"actor": SHELL, "project": project, "now": NOW, **over})


@pytest.mark.parametrize("batch", [1, 2, 2000])
def test_old_texts_go_and_figures_stay(project: ProjectInfo, batch: int) -> None:
    for number, days in enumerate((40, 20, 20, 11.5, 9, 0)):
        say(project, days, f"call-{number}")
    before = list(Call.objects.order_by("name").values())
    would = count_old_texts(project=project, now=NOW)

    gone = delete(project, batch=batch)

    assert gone == would == TextsGone(calls=4, messages=4)
    kept = CallPayload.objects.exclude(content=None).order_by("call__name")
    assert [each.content for each in kept] == ["call-4 answers", "call-5 answers"]
    after: list[Any] = list(Call.objects.order_by("name").values())
    assert [row.pop("error_message") for row in after] == [
        *([""] * 4), "they said call-4", "they said call-5",
    ]  # fmt: skip
    assert after == [{k: v for k, v in row.items() if k != "error_message"} for row in before]
    tries = CallPayload.objects.order_by("call__name").values_list("attempts", flat=True)
    said = [each[0]["message"] for each in tries if each]
    assert said == [*([NOT_KEPT] * 4), "about call-4", "about call-5"]
    shown = calls.find(project_id=project.id, call_id="call-5")
    assert shown is not None
    assert shown.messages == (SYSTEM, {"role": "user", "content": "call-5"})
    assert delete(project) == TextsGone()


def test_what_a_provider_said_goes_also_where_a_verdict_quotes_it(project: ProjectInfo) -> None:
    failed = {"content": None, "usage": None, "status": "error", "http_status": 500}
    say(project, 20, "old", **failed)
    say(project, 1, "new", **failed)

    delete(project)

    found = dict(Call.objects.values_list("name", "cause_detail"))
    assert "they said new" in found["new"]
    assert found["old"] == "The provider failed (HTTP 500, its words are no longer kept)."


def test_a_message_stays_while_a_younger_call_carries_it(project: ProjectInfo) -> None:
    say(project, 20, "old", conversation="talk")
    say(project, 1, "new", conversation="talk", messages=({"role": "user", "content": "x"},))
    say(project, 1, "same", conversation="talk", messages=(SYSTEM,))

    delete(project)

    assert StoredMessage.objects.count() == 2
    old = calls.find(project_id=project.id, call_id="old")
    assert old is not None
    assert (old.messages, old.content) == (None, None)


def test_plans_lose_their_words_and_keep_their_steps(project: ProjectInfo) -> None:
    old, new = (make_plan(project, name=f"p{days}", started_at=days_ago(days)) for days in (20, 1))
    PlanStep.objects.update(rationale="because", args={"who": "me"})

    gone = delete(project, batch=1)

    assert gone.plans == 1
    texts = dict(PlanRecord.objects.values_list("name", "intent"))
    assert texts[old.name] == ""
    assert texts[new.name] == new.intent != ""
    steps = PlanStep.objects.order_by("plan_id", "position").values_list("plan_id", "rationale")
    assert {said for plan, said in steps if plan == old.pk} <= {""}
    assert {said for plan, said in steps if plan == new.pk} <= {"because"}


def test_fits_lose_what_they_were_made_of(project: ProjectInfo) -> None:
    """And catalogs that came with them go, but for those that a younger fit or any plan needs."""
    for days, packs in ((20, "a"), (20, "b"), (1, "b"), (20, "c")):
        fit_catalog(
            actor=SHELL,
            project=project,
            model="openai/gpt-4o",
            intent="write",
            catalog={"packs": [{"name": packs, "description": "Writes."}], "pipelines": []},
            catalog_name=None,
            context=None,
            defaults=None,
            history=(),
            caller="",
            now=days_ago(days),
        )
    digests = list(Fit.objects.order_by("pk").values_list("catalog_digest", flat=True))
    plan = make_plan(project, name="p", started_at=days_ago(20))
    add_attempt(plan, catalog_digest=digests[3])
    Fit.objects.update(intent="")  # as an earlier release has left them

    gone = delete(project, batch=1)

    assert gone.fits == 3
    emptied = Fit.objects.filter(inputs__isnull=True).order_by("pk")
    assert [*emptied.values_list("catalog_digest", flat=True)] == [*digests[:2], digests[3]]
    left = PlanCatalog.objects.values_list("digest", flat=True)
    assert {*left} == {*digests[1:]}


def test_a_silent_conversation_loses_what_it_would_go_on_with(project: ProjectInfo) -> None:
    for name, days in (("silent", 20), ("going", 1)):
        say(project, days, name, conversation=name)
        at = days_ago(days)
        care.add_reminder(actor=SHELL, project=project, conversation=name, content="note", now=at)
        care.clear(actor=SHELL, project=project, conversation=name, now=at)

    delete(project)

    assert list(Reminder.objects.values_list("conversation__name", flat=True)) == ["going"]
    packages = Round.objects.filter(restart__isnull=False)
    assert list(packages.values_list("conversation__name", flat=True)) == ["going"]
    assert conversations.find(project_id=project.id, conversation_id="silent") is not None


def test_a_project_that_says_nothing_keeps_its_texts(project: ProjectInfo) -> None:
    say(project, 400, "old")

    assert delete(replace(project, text_days=None)) == TextsGone()


def test_only_an_owner_deletes_texts(project: ProjectInfo) -> None:
    editor = Person(name="editor", roles={project.id: MemberRole.EDITOR})

    with pytest.raises(Forbidden):
        delete(project, actor=editor)


def test_retain_does_both(project: ProjectInfo, capsys: pytest.CaptureFixture[str]) -> None:
    say(project, 400, "old")
    Project.objects.filter(pk=project.id).update(retention_days=100_000)

    call_command("retain", "--dry-run")
    assert "would delete the texts of 1 calls" in capsys.readouterr().out
    call_command("retain")

    assert "deleted the texts of 1 calls" in capsys.readouterr().out
    assert Call.objects.count() == 1
