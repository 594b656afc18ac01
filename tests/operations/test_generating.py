"""Generated calls: as many as asked for, told apart from real ones, and true in every row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from helmdash.core.access.permissions import SHELL
from helmdash.operations.demo.generating import GenerateError, generate_calls
from helmdash.records.models import Call, CallPayload, Conversation, Project
from tests.factories import NOW, make_project
from tests.recording.load import assert_numbered_without_gap_or_double

pytestmark = pytest.mark.django_db


def test_generated_calls_hold_together(db: None) -> None:
    make_project()

    done = generate_calls(actor=SHELL, calls=1_500, conversations=60, now=NOW)

    rows = Call.objects.filter(project_id=done.project.id)
    assert rows.count() == done.calls == 1_500
    assert_numbered_without_gap_or_double(done.project.id)
    assert rows.filter(started_at__gt=NOW).count() == 0
    assert rows.filter(started_at__lt=NOW - timedelta(days=30)).count() == 0
    assert set(rows.values_list("level", flat=True)) == {
        "healthy",
        "caution",
        "critical",
        "unknown",
    }
    assert rows.exclude(cause="").values("cause").distinct().count() >= 8
    assert rows.values("model").distinct().count() >= 8
    assert rows.filter(conversation=None).exists()
    with_texts = CallPayload.objects.filter(call__project_id=done.project.id)
    assert 0 < with_texts.exclude(message_hashes=None).count() < 400
    assert 50 <= Conversation.objects.filter(project_id=done.project.id).count() <= 60


def test_plans_have_a_variant_and_nothing_else_has(db: None) -> None:
    make_project()
    generate_calls(actor=SHELL, calls=3_000, now=NOW)

    told = set(Call.objects.order_by().values_list("purpose", "prompt_variant"))

    assert {variant for purpose, variant in told if purpose == "plan"} == {
        "full_steps",
        "single_pick",
    }
    assert {variant for purpose, variant in told if purpose != "plan"} == {""}


def test_the_same_seed_makes_the_same_calls(db: None) -> None:
    make_project()
    columns = ("name", "model", "prompt_tokens", "level", "cause", "started_at", "generation")

    first, again, other = (
        list(
            Call.objects.filter(
                project_id=generate_calls(
                    actor=SHELL, calls=200, seed=seed, slug=slug, now=NOW
                ).project.id
            )
            .order_by("id")
            .values_list(*columns)
        )
        for slug, seed in (("one", 7), ("two", 7), ("three", 8))
    )

    assert first == again
    assert first != other


def test_a_project_with_calls_is_filled_only_by_force(db: None) -> None:
    make_project()
    generate_calls(actor=SHELL, calls=50, now=NOW)

    with pytest.raises(GenerateError, match="generated has calls already"):
        generate_calls(actor=SHELL, calls=50, now=NOW)
    done = generate_calls(actor=SHELL, calls=50, now=NOW, force=True)

    assert Call.objects.filter(project_id=done.project.id).count() == 100


@pytest.mark.parametrize("slug", ["default", "demo"])
def test_real_and_demo_projects_are_never_filled(db: None, slug: str) -> None:
    make_project()
    Project.objects.create(slug="demo", name="Demo", is_demo=True)

    with pytest.raises(GenerateError, match="not made up"):
        generate_calls(actor=SHELL, calls=5, now=NOW, slug=slug, force=True)

    assert not Call.objects.exists()


def test_the_command_says_what_it_made(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    make_project()

    call_command("generate", calls=40, conversations=4, project="trial")

    assert (
        "Recorded 40 calls in 4 conversations into the project “trial”" in capsys.readouterr().out
    )
    with pytest.raises(CommandError, match="trial has calls already"):
        call_command("generate", calls=40, project="trial")
    with pytest.raises(CommandError, match="--calls must be at least 1"):
        call_command("generate", calls=0)
