"""Signing in by name and password, and Django's permissions from memberships.

Groups, permissions given one by one, and the staff flag decide nothing here: the role of a
membership does, and superusers may do everything.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Model

from helmdash.records.access.rights import has_permission, permissions_of, person_of
from helmdash.records.access.who_asks import find_user


class MembershipBackend(ModelBackend):
    """`user.has_perm("records.change_budget", row)`: by the role in the row's project.

    Without a row: whether there is any project in which the user has the permission.
    """

    def get_user(self, user_id: Any) -> User | None:
        """The account of a session, with how pages look to it: they need both at each request."""
        user = find_user(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None

    def get_user_permissions(
        self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None
    ) -> set[str]:
        """Every permission of Django's that memberships give: for a row; obj None: for any row at
        all."""
        return permissions_of(person_of(user_obj), obj)

    def get_group_permissions(
        self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None
    ) -> set[str]:
        """Groups give nothing."""
        return set()

    def get_all_permissions(
        self, user_obj: AbstractBaseUser | AnonymousUser, obj: Model | None = None
    ) -> set[str]:
        """The same as `get_user_permissions`, since nothing else gives any."""
        return self.get_user_permissions(user_obj, obj)

    def has_perm(
        self,
        user_obj: AbstractBaseUser | AnonymousUser,
        perm: str,
        obj: Model | None = None,
    ) -> bool:
        """Whether an active account has the permission: for a row; obj None: for any row at all."""
        return has_permission(person_of(user_obj), perm, obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        """Whether there is anything for them in an app."""
        person = person_of(user_obj)
        return person.is_superuser or (app_label == "records" and bool(person.roles))
