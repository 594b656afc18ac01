"""Members of projects in the admin: who may do what where, with its history."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin

# Registers its own, whose places ours take below.
from django.contrib.auth import admin as auth_admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from helmdash.installation import COMMAND
from helmdash.records.admin.history import HistoryMixin
from helmdash.records.admin.scoped import ScopedModelAdmin, ScopedTabularInline
from helmdash.records.admin.typed import ModelForm
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


class MemberInline(ScopedTabularInline[Membership, Project]):
    """The members, on the page of their project."""

    model = Membership
    form = MembershipForm
    fields = ["user", "role"]
    extra = 1
    ordering = ["id"]


class MembershipInline(ScopedTabularInline[Membership, User]):
    """The projects of somebody, on the page of their account, which superusers have."""

    model = Membership
    fields = ["project", "role"]
    extra = 1
    ordering = ["id"]


@admin.register(Membership)
class MembershipAdmin(HistoryMixin, ScopedModelAdmin[Membership]):
    """Who is in which project, and who put them there."""

    form = MembershipForm
    actions = ["delete_selected"]
    list_display = ["user", "project", "role", "created_at"]
    list_filter = ["project", "role"]
    list_select_related = ["project", "user"]
    ordering = ["project_id", "id"]
    search_fields = ["user__username"]
    search_help_text = "Part of a user name."
    change_list_template = "admin/helmdash/managed_list.html"


class AccountAdmin(auth_admin.UserAdmin):  # type: ignore[type-arg]  # cannot be subscripted
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


admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.register(User, AccountAdmin)
