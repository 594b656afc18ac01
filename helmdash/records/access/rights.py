"""Rows and people as core.access.permissions knows them: who somebody is, and whose a row is.

For queries and operations, and for the admin, which asks through the backend (records.backend).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection
from django.db.models import Model, OuterRef, Q, QuerySet, Subquery

from helmdash.core.access.permissions import MemberRole, Person, Right, may, readable
from helmdash.records.models import Membership, Project

_KNOWN = "_helmdash_person"
# What the four permissions that Django has for each table take. A table that is not here is for
# superusers; so is an action that is None.
_READ_ONLY = {"view": Right.READ}
_ACTIONS = ("view", "add", "change", "delete")
_TABLES: dict[str, dict[str, Right]] = {
    "alertdelivery": _READ_ONLY,
    "apikey": _READ_ONLY | {"add": Right.MANAGE_KEYS, "change": Right.MANAGE_KEYS},
    "budget": {"view": Right.READ_BUDGETS} | dict.fromkeys(_ACTIONS[1:], Right.CHANGE_BUDGETS),
    "call": _READ_ONLY,
    "catalogrevision": _READ_ONLY | {"add": Right.CHANGE_CATALOGS},
    "conversation": _READ_ONLY,
    "fit": _READ_ONLY,
    "healthchange": _READ_ONLY,
    "membership": _READ_ONLY | dict.fromkeys(_ACTIONS[1:], Right.MANAGE_MEMBERS),
    "planattempt": _READ_ONLY,
    "planrecord": _READ_ONLY,
    "planstep": _READ_ONLY,
    "project": _READ_ONLY | {"change": Right.CHANGE_SETTINGS},
    "suggestion": _READ_ONLY,
    "upstream": _READ_ONLY | dict.fromkeys(_ACTIONS[1:], Right.MANAGE_UPSTREAMS),
}
_APP = "records"


def person_of(user: AbstractBaseUser | AnonymousUser) -> Person:
    """Who a user is to us: their roles by project. One query for each request, none for superusers.

    Nobody, for a user that is not signed in or not active. Demo data goes with the default project:
    who has a role in that has the same in it, unless given a greater one.
    """
    known = getattr(user, _KNOWN, None)
    if isinstance(known, Person):
        return known
    person = _read_person(user)
    setattr(user, _KNOWN, person)
    return person


def project_of(row: Model) -> int | None:
    """The primary key of the project a row belongs to; None: every project's, or nobody's."""
    if isinstance(row, Project):
        return row.pk
    found = getattr(row, "project_id", None)
    return found if isinstance(found, int) else None


def has_permission(person: Person, permission: str, row: Model | None = None) -> bool:
    """Whether a person has a permission of Django's: for a row; None: for any row at all.

    permission: such as `records.change_budget`.
    """
    if person.is_superuser:
        return True
    right = _right(permission)
    if right is None:
        return False
    if row is not None:
        return may(person, right, project_id=project_of(row))
    return any(may(person, right, project_id=project) for project in person.roles)


def permissions_of(person: Person, row: Model | None = None) -> set[str]:
    """Every permission of Django's that the person has for a row; None: for any row at all."""
    names = (f"{_APP}.{action}_{table}" for table, rights in _TABLES.items() for action in rights)
    return {name for name in names if has_permission(person, name, row)}


def projects_with(person: Person, *permissions: str) -> QuerySet[Project]:
    """The projects in which a person has one of these permissions, the default first."""
    rows = Project.objects.order_by("-is_default", "is_demo", "name")
    if person.is_superuser:
        return rows
    rights = [right for each in permissions if (right := _right(each)) is not None]
    allowed = [
        project
        for project in person.roles
        if any(may(person, right, project_id=project) for right in rights)
    ]
    return rows.filter(pk__in=allowed)


def visible_rows(rows: QuerySet[Any], person: Person) -> QuerySet[Any]:
    """Of rows that belong to projects: those of projects that the person may read."""
    ids = readable(person)
    if ids is None:
        return rows
    column = "pk" if rows.model is Project else "project_id"
    if not hasattr(rows.model, column):
        return rows.none()
    return rows.filter(Q(**{f"{column}__in": ids}))


def keeps_an_owner(project_id: int, *, without: Collection[int]) -> bool:
    """Whether a project that has owners has one besides these memberships, given by primary key.

    One query. Superusers may do everything, and yet a project whose people are left without an
    owner waits for them. Whose account is locked owns nothing until it is unlocked.
    """
    rows = Membership.objects.filter(
        project_id=project_id, role=MemberRole.OWNER.value, user__is_active=True
    )
    owners = set(rows.values_list("pk", flat=True))
    return not owners or not owners.issubset(without)


def lock_members(project_ids: Collection[int]) -> None:
    """Let nobody else change the members of projects until this transaction ends; nothing outside
    of one. Before `keeps_an_owner`: else of two owners both see the other, and leave."""
    if connection.in_atomic_block:
        rows = Project.objects.select_for_update().filter(pk__in=project_ids)
        # In one order, or two such locks could wait for each other.
        list(rows.order_by("pk").values_list("pk"))


LAST_OWNER = "a project keeps its last owner; make somebody else an owner first"


def _read_person(user: AbstractBaseUser | AnonymousUser) -> Person:
    name = user.get_username()
    if not user.is_authenticated or not user.is_active:
        return Person(name=name)
    if getattr(user, "is_superuser", False):
        return Person(name=name, is_superuser=True)
    demo = Project.objects.filter(is_demo=True).exclude(pk=OuterRef("project_id")).order_by("pk")
    found = Membership.objects.filter(user_id=user.pk).values_list(
        "project_id", "role", "project__is_default", Subquery(demo.values("pk")[:1])
    )
    roles: dict[int, MemberRole] = {}
    for project, role, is_default, demo_id in found:
        _raise_to(roles, project, MemberRole(role))
        if is_default and demo_id is not None:
            _raise_to(roles, demo_id, MemberRole(role))
    return Person(name=name, roles=roles)


def _raise_to(roles: dict[int, MemberRole], project: int, role: MemberRole) -> None:
    order = list(MemberRole)
    roles[project] = max(roles.get(project, role), role, key=order.index)


def _right(permission: str) -> Right | None:
    app, _, name = permission.partition(".")
    action, _, table = name.partition("_")
    return _TABLES.get(table, {}).get(action) if app == _APP else None
