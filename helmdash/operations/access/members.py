"""People: the first admin, and who has which role in a project."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from helmdash.core.access.permissions import Actor, MemberRole, Right, may, require, require_role
from helmdash.operations.access.keys import AccessError
from helmdash.records.access.rights import LAST_OWNER, keeps_an_owner
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import Membership, Project

ADMIN_NAME = "admin"


class NoAccount(AccessError):
    """Nobody has this name, and no account can be made of it; the message says why."""


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

    An account that is missing is made, without a password, by whoever may touch what concerns every
    project. Raises AccessError for an unknown project, a name that no account can have, an account
    that is missing, and the last owner of a project; Forbidden where the actor manages no members,
    or would give more than it may do.
    """
    with transaction.atomic():
        row = _managed_project(actor, project)
        require_role(actor, role, project_id=row.pk)
        account, is_new = _account(actor, user)
        membership = Membership.objects.filter(project=row, user=account).first()
        if membership is not None and role is not MemberRole.OWNER:
            _require_another_owner(membership)
        before = values_of(membership) if membership is not None else None
        membership = membership or Membership(project=row, user=account)
        membership.role = role.value
        _note(membership, actor)
        membership.save()
        note_row(actor=actor, row=membership, before=before)
    return is_new


def remove_member(*, actor: Actor, user: str, project: str) -> None:
    """End somebody's part in a project. Raises AccessError when there was none, or the project
    would be without an owner; Forbidden."""
    with transaction.atomic():
        row = _managed_project(actor, project)
        found = Membership.objects.filter(project=row, user__username=user).first()
        if found is None:
            raise AccessError(f"user: {user} is no member of {project}")
        _require_another_owner(found)
        _note(found, actor)
        note_row(actor=actor, row=found, before=values_of(found), is_gone=True)
        found.delete()


def _managed_project(actor: Actor, slug: str) -> Project:
    # The project's row is the lock: two owners cannot both leave at once.
    row = Project.objects.select_for_update().filter(slug=slug).first()
    if row is None:
        raise AccessError(f"project: there is no project called {slug}")
    require(actor, Right.MANAGE_MEMBERS, project_id=row.pk)
    return row


def _require_another_owner(membership: Membership) -> None:
    if not keeps_an_owner(membership.project_id, without={membership.pk}):
        raise AccessError(f"user: {membership.user} is the only owner: {LAST_OWNER}")


def _account(actor: Actor, name: str) -> tuple[User, bool]:
    users = get_user_model()
    found = users.objects.filter(username=name).first()
    if found is not None:
        return found, False
    if not may(actor, Right.ADMINISTER, project_id=None):
        raise NoAccount(f"user: nobody is called {name}; a superuser makes accounts")
    account = users(username=name)
    account.set_unusable_password()
    try:
        account.full_clean()
    except ValidationError as error:
        raise NoAccount("user: " + " ".join(error.messages)) from None
    account.save()
    note_row(actor=actor, row=account, before=None)
    return account, True


def _note(row: Membership, actor: Actor) -> None:
    # simple_history reads this attribute when it writes the history row.
    row._change_reason = f"by {actor}"  # type: ignore[attr-defined]
