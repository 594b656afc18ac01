"""Plain functions that make what tests need; the cast has roles (owner, stranger)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.core.calls.capture import Capture
from helmdash.operations.access import keys, members, project_settings
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo, default_project, project_info
from helmdash.records.models import Project, Suggestion, Trial
from tests.support.shipped_rows import load_shipped_budgets

NOW = datetime(2026, 6, 5, 14, 41, 3, tzinfo=UTC)


def make_project(**over: Any) -> ProjectInfo:
    """The default project with the shipped budgets; another one when a slug is given."""
    project_settings.ensure_project()
    load_shipped_budgets()
    if not over:
        return default_project()
    slug = over.setdefault("slug", "other")
    return project_info(Project.objects.create(**{"name": slug.title(), **over}))


def make_key(*, name: str = "owner", scopes: Sequence[str] = ("admin",), **over: Any) -> str:
    """A key's secret."""
    return keys.create_key(actor=SHELL, name=name, scopes=tuple(scopes), **over).secret


def make_capture(**over: Any) -> Capture:
    """One ordinary call: gpt-4o, 20,000 tokens in, a finished answer."""
    given: dict[str, Any] = {
        "model": "openai/gpt-4o",
        "conversation": "talk",
        "usage": {"prompt_tokens": 20_000, "completion_tokens": 200},
        "finish_reason": "stop",
        "http_status": 200,
    }
    return Capture(**{**given, **over})


def record(*captures: Capture, project: ProjectInfo | None = None) -> tuple[Recorded, ...]:
    """Record calls as the API would."""
    return record_calls(
        project=project or make_project(),
        captures=captures or (make_capture(),),
        caller="owner",
        now=timezone.now(),
    )


def make_suggestion(*, project: ProjectInfo, **over: Any) -> Suggestion:
    """An open one: less input for gpt-4o."""
    given: dict[str, Any] = {
        "model_key": "openai/gpt-4o",
        "model": "openai/gpt-4o",
        "figure": "input_tokens",
        "changes": {"input_tokens": 24_575},
        "today": {"input_tokens": 100_000},
        "evidence": {
            "method": "safe-input-5",
            "why": "96% of 83 answers just below 24,575 tokens are clean and 21% of 70 just above.",
            "calls": 240,
            "since": "2026-05-16T12:00:00Z",
            "until": "2026-06-05T14:00:00Z",
            "low": 0.61,
            "high": 0.84,
            "touched": {"calls": 90, "clean": 18},
            "query": "key:openai/gpt-4o evidence:input_tokens",
            "touched_query": "key:openai/gpt-4o evidence:input_tokens prompt:>24575",
        },
        "made_at": NOW,
        "refreshed_at": NOW,
    }
    return Suggestion.objects.create(project_id=project.id, **{**given, **over})


def make_trial(*, project: ProjectInfo, model_key: str = "m", **over: Any) -> Trial:
    """One that ended at once; state="running" and ended_at=None: one that runs."""
    given: dict[str, Any] = {
        "changes": {},
        "share": 0.5,
        "state": "finished",
        "method": "m",
        "started_at": NOW,
        "ended_at": NOW,
    }
    return Trial.objects.create(
        project_id=project.id,
        suggestion=make_suggestion(project=project, model_key=model_key),
        model_key=model_key,
        **{**given, **over},
    )


def sign_in(name: str, *, project: ProjectInfo, role: MemberRole) -> Client:
    """The browser of a member of a project; the account is made when it is missing."""
    members.set_member(actor=SHELL, user=name, project=project.slug, role=role)
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client
