"""Members of projects in the admin: who may do what where, with its history."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms
from django.contrib import admin

# Registers its own, whose places ours take below.
from django.contrib.auth import admin as auth_admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from helmdash.core.access.permissions import MemberRole
from helmdash.installation import COMMAND
from helmdash.records.access.rights import LAST_OWNER, keeps_an_owner, lock_members, person_of
from helmdash.records.admin.history import HistoryMixin
from helmdash.records.admin.scoped import (
    Light,
    NamedCells,
    Noted,
    ScopedModelAdmin,
    ScopedTabularInline,
    SoundSelection,
)
from helmdash.records.admin.typed import ModelForm
from helmdash.records.audit import note, note_row, values_of
from helmdash.records.models import Membership, Project


class AccountName(forms.CharField):
    """An account by its name, typed: a list to choose from would tell everybody who has one."""

    widget = forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"})

    def prepare_value(self, value: Any) -> Any:
        """The name of a stored member."""
        if isinstance(value, int):
            account = get_user_model().objects.filter(pk=value).first()
            return account.get_username() if account else ""
        return value

    def clean(self, value: Any) -> Any:
        """The account. Raises ValidationError when nobody is called so."""
        name = str(super().clean(value)).strip()
        account = get_user_model().objects.filter(username=name).first()
        if account is None:
            raise ValidationError(
                f"Nobody has this name. `{COMMAND} member add` makes accounts, and so do "
                "superusers."
            )
        return account

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether another name is typed than the stored member's."""
        return bool(self.prepare_value(initial) != data)


class MembershipForm(ModelForm[Membership]):
    """A person, a project, a role."""

    user = AccountName(label="User name")

    class Meta:
        model = Membership
        fields = ("project", "user", "role")


class OneMembershipForm(MembershipForm):
    """The same on a page of its own."""

    def clean(self) -> dict[str, Any]:
        """The last owner of a project stays one. Raises ValidationError."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        before = Membership.objects.filter(pk=self.instance.pk).first()
        if before is not None and not _stays_owner(self, values.get("role", before.role)):
            lock_members({before.project_id})
            _require_another_owner(before.project_id, leaving={before.pk})
        return values


class OwnersStay(NamedCells):
    """Rows of members: no project loses its last owner by what is done to all of them at once."""

    def clean(self) -> None:
        """Raises ValidationError."""
        super().clean()
        kept = [form for form in self.forms if form.is_valid() and not self._is_gone(form)]
        owners = [form for form in kept if form.instance.role == MemberRole.OWNER.value]
        stays = {each.instance.pk for each in owners if _stays_owner(each, each.instance.role)}
        new = [form.instance for form in owners if form.instance.pk not in stays]
        coming = {row.project_id for row in new if row.user.is_active}
        leaving = {form.instance.pk for form in self.initial_forms} - stays
        rows = Membership.objects.filter(pk__in=leaving, role=MemberRole.OWNER.value)
        rows = rows.exclude(project__in=coming)
        projects = set(rows.values_list("project_id", flat=True))
        # Who else stays is asked for anew under the lock: the forms were read before it.
        lock_members(projects)
        for project in projects:
            _require_another_owner(project, leaving=leaving)

    def _is_gone(self, form: Any) -> bool:
        return bool(self.can_delete and form.cleaned_data.get("DELETE"))


def _stays_owner(form: Any, role: str) -> bool:
    is_same = {"project", "user"}.isdisjoint(form.changed_data)
    return role == MemberRole.OWNER.value and is_same


def _require_another_owner(project_id: int, *, leaving: set[int]) -> None:
    if not keeps_an_owner(project_id, without=leaving):
        raise ValidationError(f"{LAST_OWNER.capitalize()}.")


def _last_owners(leaving: Collection[Membership]) -> list[str]:
    """Of memberships that are about to go those that stay, and why."""
    keys = {row.pk for row in leaving}
    lock_members({row.project_id for row in leaving})
    return [
        f"{row}: {LAST_OWNER}."
        for row in leaving
        if row.role == MemberRole.OWNER.value and not keeps_an_owner(row.project_id, without=keys)
    ]


class OneTransaction:
    """For a ModelAdmin: actions on chosen rows are one transaction, as each form of Django's is, so
    that what was asked before it (`lock_members`) still holds when the rows go."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The list, or an action of it."""
        if request.method != "POST":
            return super().changelist_view(request, extra_context)  # type: ignore[misc]
        with transaction.atomic():
            return super().changelist_view(request, extra_context)  # type: ignore[misc]


class MemberInline(ScopedTabularInline[Membership, Project]):
    """The members, on the page of their project."""

    model = Membership
    form = MembershipForm
    formset = OwnersStay
    fields = ["user", "role"]
    extra = 1
    ordering = ["id"]


class MembershipInline(ScopedTabularInline[Membership, User]):
    """The projects of somebody, on the page of their account, which superusers have."""

    model = Membership
    formset = OwnersStay
    fields = ["project", "role"]
    extra = 1
    ordering = ["id"]


@admin.register(Membership)
class MembershipAdmin(OneTransaction, HistoryMixin, ScopedModelAdmin[Membership]):
    """Who is in which project, and who put them there."""

    form = OneMembershipForm
    actions = ["delete_selected"]
    list_display = ["user", "project", "role", "created_at"]
    list_filter = ["project", "role"]
    list_select_related = ["project", "user"]
    ordering = ["project_id", "id"]
    search_fields = ["user__username"]
    search_help_text = "Part of a user name."
    change_list_template = "admin/helmdash/managed_list.html"

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with them, and the last owners that stay: those are told as protected."""
        found, counts, needed, protected = super().get_deleted_objects(objs, request)
        return found, counts, needed, [*protected, *_last_owners(objs)]

    def revert_problem(self, current: Any | None, version: Any) -> str | None:
        """The last owner stays one."""
        if current is None or version.role == MemberRole.OWNER.value:
            return None
        lock_members({current.project_id})
        is_kept = keeps_an_owner(current.project_id, without={current.pk})
        return None if is_kept else f"{LAST_OWNER}."


class AccountAdmin(
    Light,
    SoundSelection,
    OneTransaction,
    Noted,
    auth_admin.UserAdmin,  # type: ignore[type-arg]  # cannot be subscripted
):
    """Accounts, for superusers. What people may do is their memberships' affair.

    So neither the staff flag nor groups nor single permissions are shown: they decide nothing.
    """

    inlines = [MembershipInline]
    list_display = ("username", "email", "is_active", "is_superuser", "last_login")
    list_filter = ("is_superuser", "is_active")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Rights",
            {
                "fields": ("is_active", "is_superuser"),
                "description": "A superuser may do everything. Others get a role in each project.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """A new account first gets its name."""
        return super().get_inlines(request, obj) if obj is not None else []

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with them; an account stays that is a project's last owner."""
        found, counts, needed, protected = super().get_deleted_objects(objs, request)
        rows = Membership.objects.filter(user__in=[row.pk for row in objs])
        kept = _last_owners(list(rows.select_related("user", "project")))
        return found, counts, needed, [*protected, *kept]

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete, and note what the account could do where, too."""
        _note_roles(request, [obj.pk])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Delete accounts, and note the same of each."""
        with transaction.atomic():
            _note_roles(request, [row.pk for row in queryset])
            super().delete_queryset(request, queryset)

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Django tells here alone that the page of a password was used."""
        page = request.resolver_match.url_name if request.resolver_match else None
        if page == "auth_user_password_change":
            note(
                actor=person_of(request.user),
                project_id=None,
                kind="account",
                action="changed",
                subject=obj.get_username(),
                changes=(("password", "set", "set anew"),),
            )
        return super().log_change(request, obj, message)


def _note_roles(request: HttpRequest, accounts: list[int]) -> None:
    """Memberships go with their account, by the database: owners of the projects would not know."""
    rows = Membership.objects.filter(user__in=accounts).select_related("user", "project")
    for row in rows.order_by("project_id", "id"):
        note_row(actor=person_of(request.user), row=row, before=values_of(row), is_gone=True)


admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.register(User, AccountAdmin)
