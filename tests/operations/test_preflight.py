"""Whether conversations of now would fit the fallback of their budget, or another model of their
upstream."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.utils import timezone

from helmdash.core.access.permissions import MemberRole
from helmdash.core.budgets.preflight import Room, room_for
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.preflight import fallback_preflights, preflights, warnings_of
from helmdash.records.models import Budget, LearnedWindow, Upstream
from tests.api.conftest import Door
from tests.builders import make_budget
from tests.factories import make_capture, make_key, record, sign_in
from tests.pages.hygiene import faults
from tests.recording.support import make_ruled_project

MODEL, SMALL = "openai/gpt-4o", "acme/small"


@pytest.mark.parametrize(
    ("prompt", "room"),
    [
        (None, Room.UNKNOWN),
        (60, Room.FITS),
        (75, Room.CAUTION),
        (95, Room.CRITICAL),
        (101, Room.TOO_LONG),
    ],
)
def test_how_a_prompt_stands_elsewhere(prompt: int | None, room: Room) -> None:
    budget = make_budget(key="acme/small", context_length=100, input_tokens=200)

    assert room_for(prompt, budget) is room


def test_a_ceiling_below_the_limit_counts() -> None:
    budget = make_budget(key="acme/small", context_length=100, input_tokens=50)

    assert room_for(60, budget) is Room.TOO_LONG


@pytest.fixture
def project(db: None) -> ProjectInfo:
    made = make_ruled_project(payload="off")
    figures = {"input_tokens": 30_000, "output_tokens": 900, "tier": "C", "context_length": 30_000}
    Budget.objects.create(key=SMALL, project_id=made.id, **figures)
    Budget.objects.filter(key=MODEL).update(fallback_model=SMALL)
    budgets.forget_cache()
    now = timezone.now()
    for prompt in (5_000, 25_000, 29_000, 80_000, None):
        usage = None if prompt is None else {"prompt_tokens": prompt, "completion_tokens": 1}
        call: dict[str, Any] = {"usage": usage, "model": MODEL, "started_at": now}
        record(make_capture(conversation=f"of-{prompt}", **call), project=made)
    old = now - timedelta(hours=2)
    record(make_capture(conversation="old", model=MODEL, started_at=old), project=made)
    return made


def test_conversations_of_now_and_the_fallback_of_their_budget(project: ProjectInfo) -> None:
    (found,) = fallback_preflights(project_id=project.id, now=timezone.now())

    counts = (found.fits, found.caution, found.critical, found.too_long, found.unknown)
    assert (found.source, found.model, found.conversations) == (MODEL, SMALL, 5)
    assert counts == (1, 1, 1, 1, 1)
    assert [each.id for each in found.worst][:2] == ["of-80000", "of-29000"]
    (said,) = warnings_of([found], [MODEL])
    assert said.startswith(f"2 of 5 conversations of now would not fit {SMALL}")


def test_the_other_models_of_an_upstream(project: ProjectInfo) -> None:
    Upstream.objects.create(name="acme", kind="openai", base_url="https://acme.test/v1")
    now = timezone.now()
    for name, tokens in ((SMALL, 30_000), ("acme/large", 200_000)):
        LearnedWindow.objects.create(
            project_id=project.id, model_key=name, source="server", tokens=tokens, seen_at=now
        )
    usage = {"prompt_tokens": 90_000, "completion_tokens": 1}
    call = make_capture(conversation="big", usage=usage, model="acme/large", started_at=now)
    record(call, project=project)

    found = [
        each
        for each in preflights(project_id=project.id, now=timezone.now()).items
        if each.kind == "upstream"
    ]

    assert [(each.source, each.model, each.too_long) for each in found] == [("acme", SMALL, 1)]
    page = sign_in("v", project=project, role=MemberRole.VIEWER).get("/settings/upstreams/")
    assert "If another model of the same upstream" in page.content.decode()


def test_pages_and_api_tell_it_and_saving_warns(project: ProjectInfo) -> None:
    editor = sign_in("e", project=project, role=MemberRole.EDITOR)
    door = Door(make_key(scopes=("admin",)))

    page = ""
    for path in ("/budgets/", f"/budgets/?model={MODEL}"):
        page = editor.get(path).content.decode()
        assert "fallback were needed now" in page
        assert "of-80000" in page
        assert faults(page) == []
    # Each count leads to as many conversations.
    for address, count in re.findall(r'href="(/budgets/preflight/[^"]+)">(\d+)</a>', page):
        shown = editor.get(unescape(address)).content.decode()
        assert shown.count("data-row") == int(count)
        assert faults(shown) == []
    assert editor.get("/budgets/preflight/").content.decode().count("room=too_long") == 1
    for wrong in ("?kind=fallback&source=x&model=y", "?kind=fallback&room=large"):
        assert editor.get(f"/budgets/preflight/{wrong}").status_code == 404
    told = door.get("/preflight").json()
    assert (told["looked_at"], told["items"][0]["too_long"]) == (5, 1)
    row = Budget.objects.get(key=MODEL)
    saved = door.patch(f"/budgets/{row.pk}", {"fallback_model": SMALL})
    assert "would not fit" in saved["x-helmdash-note"]
    other = door.patch(f"/budgets/{row.pk}", {"output_tokens": 900})
    assert "x-helmdash-note" not in other
