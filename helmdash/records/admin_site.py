"""Who gets into the admin: superusers, and members of a project. There is one door to sign in.

A module of its own: registering the models of records.admin already needs it.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

_NOT_A_MEMBER = (
    "You are signed in, but are a member of no project. An owner or an administrator can add you."
)


# The tables by subject, each subject in the order of its tables.
_PARTS: Final = {
    "Budgets": ("Budget", "BudgetAlias", "Suggestion"),
    "Gateway": ("Upstream", "Exporter"),
    "Projects": ("Project", "Membership", "User", "ApiKey"),
    "Records": (
        *("Conversation", "Call", "PlanRecord", "Fit", "HealthChange"),
        *("CatalogRevision", "AlertDelivery"),
    ),
}
_REST: Final = "More"
# Django's own table cannot be named in its model.
_NAMES: Final = {"User": "Accounts"}


class MembersSite(AdminSite):
    """The admin for everybody who has a part in it; what they see is up to their roles.

    The staff flag opens nothing by itself, and its absence keeps no member out.
    """

    # The rail has the tables: one navigation.
    enable_nav_sidebar = False

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The tables by subject, where Django has them by application."""
        found = super().get_app_list(request, app_label)
        tables = {each["object_name"]: each for app in found for each in app["models"]}
        for name, said in _NAMES.items():
            if name in tables:
                tables[name]["name"] = said
        parts = [
            (part, [tables.pop(name) for name in names if name in tables])
            for part, names in _PARTS.items()
        ]
        parts.append((_REST, list(tables.values())))
        return [
            {"name": part, "app_label": part.lower(), "app_url": "", "models": models}
            for part, models in parts
            if models
        ]

    def has_permission(self, request: HttpRequest) -> bool:
        """Superusers, and whoever is a member of some project."""
        from helmdash.records.access.rights import person_of

        person = person_of(request.user)
        return person.is_superuser or bool(person.roles)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where Django sends those who may not enter: to the sign-in page, and members on to the
        index. Raises PermissionDenied for somebody signed in who is no member."""
        if not request.user.is_authenticated:
            return redirect_to_login(reverse("admin:index"), reverse("login"))
        if not self.has_permission(request):
            raise PermissionDenied(_NOT_A_MEMBER)
        return HttpResponseRedirect(reverse("admin:index"))
