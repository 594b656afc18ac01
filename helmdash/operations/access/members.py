"""People: the first admin, and who has which role in a project."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from helmdash.core.access.permissions import Actor, MemberRole, Right, require
from helmdash.operations.access.keys import AccessError
from helmdash.records.models import Membership, Project

ADMIN_NAME = "admin"


def ensure_admin(*, password: str) -> str | None:
    """Make the first admin, called `admin`, and give its password; None: there is a superuser
    already, who is left alone."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return None
    chosen = password or secrets.token_urlsafe(12)
    users.objects.create_superuser(username=ADMIN_NAME, password=chosen)
    return chosen


def set_member(*, actor: Actor, user: str, project: str, role: MemberRole) -> bool:
    """Give somebody a role in a project, in place of the one they had. True: the account is new.

    An account that is missing is made, without a password. Raises AccessError for an unknown
    project or a name that no account can have, Forbidden where the actor manages no members.
    """
    with transaction.atomic():
        row = _managed_project(actor, project)
        account, is_new = _account(user)
        membership = Membership.objects.filter(project=row, user=account).first()
        membership = membership or Membership(project=row, user=account)
        membership.role = role.value
        _note(membership, actor)
        membership.save()
    return is_new


def remove_member(*, actor: Actor, user: str, project: str) -> None:
    """End somebody's part in a project. Raises AccessError when there was none, Forbidden."""
    with transaction.atomic():
        row = _managed_project(actor, project)
        found = Membership.objects.filter(project=row, user__username=user).first()
        if found is None:
            raise AccessError(f"user: {user} is no member of {project}")
        _note(found, actor)
        found.delete()


def _managed_project(actor: Actor, slug: str) -> Project:
    row = Project.objects.filter(slug=slug).first()
    if row is None:
        raise AccessError(f"project: there is no project called {slug}")
    require(actor, Right.MANAGE_MEMBERS, project_id=row.pk)
    return row


def _account(name: str) -> tuple[User, bool]:
    users = get_user_model()
    found = users.objects.filter(username=name).first()
    if found is not None:
        return found, False
    account = users(username=name)
    account.set_unusable_password()
    try:
        account.full_clean()
    except ValidationError as error:
        raise AccessError("user: " + " ".join(error.messages)) from None
    account.save()
    return account, True


def _note(row: Membership, actor: Actor) -> None:
    # simple_history reads this attribute when it writes the history row.
    row._change_reason = f"by {actor}"  # type: ignore[attr-defined]
