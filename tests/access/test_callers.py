"""Who asks is told as the models have it, though statements by hand read it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.forms.models import model_to_dict

from helmdash.queries.access.access import Caller, find_caller, project_info, projects
from helmdash.queries.calls.calls import newest_mark
from helmdash.records.access.session_store import SessionStore
from helmdash.records.backend import MembershipBackend
from helmdash.records.models import ApiKey, Call, Look, Project
from tests.factories import NOW, make_capture, make_key, make_project, record

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "of_project",
    [
        {},
        {
            "is_default": False,
            "payload": "redacted",
            "retention_days": 30,
            "text_days": 7,
            "budget_mode": "enforce",
            "default_upstream": "elsewhere",
            "remediation": True,
            "redaction_patterns": ["x[0-9]+", "\u00e4"],
        },
    ],
)
def test_a_caller_is_what_the_models_say(of_project: dict[str, object]) -> None:
    make_project()
    key = make_key(name="ci", scopes=("read", "plan"))
    row = ApiKey.objects.get(name="ci")
    Project.objects.filter(pk=row.project_id).update(**of_project)
    times = {"latest_used_at": NOW, "expires_at": NOW + timedelta(days=3)} if of_project else {}
    ApiKey.objects.filter(pk=row.pk).update(**times)

    row = ApiKey.objects.select_related("project").get(pk=row.pk)
    assert find_caller(key=key) == Caller(
        key_id=row.pk,
        name="ci",
        scopes=frozenset(row.scopes),
        project=project_info(row.project),
        latest_used_at=row.latest_used_at,
        expires_at=row.expires_at,
    )


def test_an_unknown_or_revoked_key_has_no_owner() -> None:
    make_project()
    key = make_key(name="ci")
    ApiKey.objects.filter(name="ci").update(revoked_at=NOW)

    assert find_caller(key=key) is None
    assert find_caller(key="hd_unknown") is None


def test_projects_are_in_order_and_as_the_models_say() -> None:
    make_project()
    for name, is_demo in (("b", True), ("z", False), ("A", False), ("\u00e4", False)):
        make_project(slug=f"p-{is_demo}-{ord(name)}", name=name, is_demo=is_demo)
    rows = Project.objects.order_by("-is_default", "is_demo", "name")

    assert projects() == tuple(project_info(row) for row in rows)
    assert [each.is_demo for each in projects()] == [False] * 4 + [True]


@pytest.mark.parametrize("looks", [None, {"theme": "dark", "zone": "Europe/Berlin"}])
def test_an_account_comes_with_its_look(
    looks: dict[str, str] | None, django_assert_num_queries: Any
) -> None:
    made = User.objects.create_user("somebody", first_name="Zo\u00eb", last_login=NOW)
    if looks:
        Look.objects.create(user=made, **looks)
    row = User.objects.get(pk=made.pk)

    with django_assert_num_queries(1):
        user = MembershipBackend().get_user(made.pk)
        assert user is not None
        look = getattr(user, "look", None)
    assert (user, user._state.db) == (row, row._state.db)
    assert model_to_dict(user) == model_to_dict(row)
    assert (user.last_login, user.date_joined) == (row.last_login, row.date_joined)
    assert look == (row.look if looks else None)
    assert not looks or (user.look.user, user.look.theme) == (row, "dark")
    User.objects.filter(pk=made.pk).update(is_active=False)
    assert MembershipBackend().get_user(made.pk) is None
    assert MembershipBackend().get_user(made.pk + 1) is None


def test_a_session_is_read_until_it_is_over() -> None:
    store = SessionStore()
    store["what"] = ["ever", 1]
    store.create()
    key = store.session_key

    assert SessionStore(key).load() == {"what": ["ever", 1]}
    Session.objects.filter(pk=key).update(expire_date=NOW.replace(year=2001))
    over = SessionStore(key)
    assert (over.load(), over.session_key) == ({}, None)
    assert SessionStore("x" * 32).load() == {}
    assert SessionStore(None).load() == {}


def test_the_newest_call_is_the_one_that_started_last() -> None:
    project = make_project()
    assert newest_mark(project_id=project.id) == 0
    record(*(make_capture(id=f"c{n}", started_at=NOW.replace(day=1 + n % 2)) for n in range(4)))

    newest = Call.objects.order_by("-started_at", "-id").values_list("id", flat=True).first()
    assert newest_mark(project_id=project.id) == newest
    assert newest_mark(project_id=project.id + 1) == 0
