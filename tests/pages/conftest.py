"""The cast of the pages: an owner who may do everything, a viewer who only reads."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.core.calls.capture import CapturedTrim, SentSizes
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.pages import braking
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, make_project, record, sign_in
from tests.plan_rows import add_attempt, make_plan

CATALOG = {
    "packs": [
        {
            "name": f"tool.{n}",
            "description": f"Does the thing number {n}. And it says so at some length.",
            "metadata": {"intent_keywords": ["blog", f"word{n}"], "typical_use": "Often. " * 9},
        }
        for n in range(40)
    ],
    "pipelines": [
        {"id": "write-blog", "name": "Write a blog", "metadata": {"supersedes": ["tool.1"]}}
    ],
}


@pytest.fixture
def no_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brake of sign-in sees one moment: its first wait is a second, a page may take longer."""
    moment = timezone.now()
    monkeypatch.setattr(braking, "shared_now", lambda: moment)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """The default project with the shipped budgets, and no call yet."""
    return make_project()


@pytest.fixture
def owner(project: ProjectInfo) -> Client:
    """Signed in, staff."""
    client = Client()
    client.force_login(User.objects.create_superuser("owner", password="owner-password"))
    return client


@pytest.fixture
def viewer(project: ProjectInfo) -> Client:
    """Signed in, a member who only reads."""
    User.objects.create_user("viewer", password="viewer-password")
    return sign_in("viewer", project=project, role=MemberRole.VIEWER)


@pytest.fixture
def editor(project: ProjectInfo) -> Client:
    """Signed in, a member who also tries plans and cares."""
    return sign_in("editor", project=project, role=MemberRole.EDITOR)


@pytest.fixture
def filled(project: ProjectInfo) -> str:
    """Calls at every level, with causes, a Trim, a stored fit and a plan. Gives the fit's id."""
    now = timezone.now()
    import_catalog(actor=SHELL, project_id=project.id, name="tools", body=CATALOG, now=now)
    fit = fit_catalog(
        actor=SHELL,
        project=project,
        model="some/free-model:free",
        intent="write a blog post",
        catalog=None,
        catalog_name=None,
        context=None,
        defaults=None,
        history=(),
        caller="owner",
        now=now,
    )
    prompts = (20_000, 60_000, 105_000, None, 120_000)
    captures = [
        make_capture(
            id=f"talk-{n}",
            usage={"prompt_tokens": prompt, "completion_tokens": 9} if prompt else None,
            started_at=now - timedelta(minutes=50 - n),
        )
        for n, prompt in enumerate(prompts)
    ]
    captures += [
        make_capture(
            id="cut",
            conversation="plans",
            model="some/free-model:free",
            purpose="plan",
            correlation_id="story",
            fit_id=fit.fit_id,
            trim=CapturedTrim(
                before_bytes=30_000, after_bytes=9_000, dropped=("pack.limitations[]",)
            ),
            sent=SentSizes(bytes=11_000, messages=2),
            content="",
            usage={"prompt_tokens": 2_800, "completion_tokens": 0},
            attempts=({"http_status": 429},),
        ),
        make_capture(id="also/with slash", conversation=None, correlation_id="story"),
        make_capture(
            id="lost", conversation="quiet", usage=None, http_status=503, finish_reason=None
        ),
    ]
    record(*captures, project=project)
    add_attempt(make_plan(project, fit_name=fit.fit_id, before_bytes=30_000, after_bytes=9_000))
    return fit.fit_id
