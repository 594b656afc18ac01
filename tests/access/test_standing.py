"""Who began something may still do it, or may not any more: as they are known now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from helmdash.core.access.permissions import SHELL, Forbidden, MemberRole, Right
from helmdash.operations.access import keys, members
from helmdash.queries.access.access import ProjectInfo, find_caller, person_of
from helmdash.queries.access.standing import require_still
from helmdash.records.models import ApiKey
from tests.factories import NOW, make_project

AFTER = NOW + timedelta(minutes=5)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def make_planner(scopes: tuple[str, ...] = ("plan",)) -> str:
    return keys.create_key(actor=SHELL, name="planner", scopes=scopes).secret


def revoke() -> None:
    keys.revoke_key(actor=SHELL, name="planner", now=NOW)


def rotate(*scopes: str) -> None:
    revoke()
    make_planner(scopes)


@pytest.mark.parametrize(
    ("meanwhile", "may"),
    [
        (lambda: None, True),
        (revoke, False),
        (lambda: ApiKey.objects.update(expires_at=AFTER - timedelta(seconds=1)), False),
        (lambda: ApiKey.objects.update(expires_at=AFTER + timedelta(seconds=1)), True),
        (lambda: ApiKey.objects.update(scopes=["read"]), False),
        (lambda: ApiKey.objects.update(scopes=["admin"]), True),
        # Another key of the name took its place; what it may counts.
        (lambda: rotate("plan"), True),
        (lambda: rotate("read"), False),
        (lambda: ApiKey.objects.all().delete(), False),
    ],
)
def test_a_key_is_what_it_is_now(
    project: ProjectInfo, meanwhile: Callable[[], object], may: bool
) -> None:
    caller = find_caller(key=make_planner())
    assert caller is not None

    meanwhile()

    if may:
        require_still(caller.actor, Right.PLAN, project_id=project.id, now=AFTER)
        return
    with pytest.raises(Forbidden):
        require_still(caller.actor, Right.PLAN, project_id=project.id, now=AFTER)


@pytest.mark.parametrize(
    ("meanwhile", "may"),
    [
        (lambda: None, True),
        (lambda: members.remove_member(actor=SHELL, user="ann", project="default"), False),
        (lambda: User.objects.update(is_active=False), False),
        (lambda: User.objects.all().delete(), False),
        (lambda: User.objects.update(is_superuser=True), True),
    ],
)
def test_a_person_is_who_they_are_now(
    project: ProjectInfo, meanwhile: Callable[[], object], may: bool
) -> None:
    members.set_member(actor=SHELL, user="ann", project=project.slug, role=MemberRole.EDITOR)
    actor = person_of(User.objects.get(username="ann"))

    meanwhile()

    if may:
        require_still(actor, Right.PLAN, project_id=project.id, now=AFTER)
        return
    with pytest.raises(Forbidden):
        require_still(actor, Right.PLAN, project_id=project.id, now=AFTER)


def test_the_command_line_may(project: ProjectInfo) -> None:
    require_still(SHELL, Right.PLAN, project_id=project.id, now=AFTER)
