"""API keys in the admin: made here, shown once, ended here."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

from helmdash.core.access.permissions import Person, grantable
from helmdash.records.access.rights import person_of, projects_with
from helmdash.records.admin.clock import now
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.admin.typed import ModelForm
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import ApiKey, Project, ScopeChoices


class ApiKeyForm(ModelForm[ApiKey]):
    """Scopes as boxes to tick, each with what it allows."""

    scopes = forms.MultipleChoiceField(
        choices=ScopeChoices.choices,
        widget=forms.CheckboxSelectMultiple,
        help_text="None of them includes another, but admin includes all. "
        "Budgets may be read with any key.",
        error_messages={"required": "Tick at least one: a key without scopes can do nothing."},
    )

    class Meta:
        model = ApiKey
        fields = ("project", "name", "scopes", "expires_at")

    # Who fills it in (records.admin.scoped).
    person = Person(name="")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "scopes" in self.fields and not self.person.is_superuser:
            field: Any = self.fields["scopes"]
            field.choices = [each for each in ScopeChoices.choices if each[0] in self._offered()]

    def _offered(self) -> set[str]:
        """Scopes that the person may give in some project, and those that the key has already."""
        given = set(self.instance.scopes) if self.instance.pk else set()
        projects = [self.instance.project] if self.instance.pk else self._projects()
        return given.union(*(self._grantable(each) for each in projects))

    def _projects(self) -> QuerySet[Project]:
        return projects_with(self.person, "records.add_apikey")

    def _grantable(self, project: Project) -> set[str]:
        found = grantable(self.person, project_id=project.pk, is_default=project.is_default)
        return {scope.value for scope in found}

    def clean(self) -> dict[str, Any]:
        """Nobody gives a scope that they do not hold."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        project = self.instance.project if self.instance.pk else values.get("project")
        if project is not None:
            known = set(self.instance.scopes) if self.instance.pk else set()
            beyond = set(values.get("scopes", ())) - known - self._grantable(project)
            if beyond:
                self.add_error(
                    "scopes",
                    f"Nobody gives a scope that they do not hold: {', '.join(sorted(beyond))}.",
                )
        return values

    def _get_validation_exclusions(self) -> set[str]:
        """The rule about names speaks of a project's active keys, so it needs to see both."""
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]
        # Of a new key the project is typed: where it cannot be read, that is said already.
        shown = {"revoked_at", "project"} if self.instance.pk else {"revoked_at"}
        return excluded - shown

    def clean_name(self) -> str:
        """A name shows up as the caller of calls, so blanks around it would confuse."""
        return str(self.cleaned_data["name"]).strip()

    def clean_expires_at(self) -> datetime | None:
        """The end of the key, None for none. A new key that is over already would only puzzle, and
        raises ValidationError; one there is may be ended so."""
        ends: datetime | None = self.cleaned_data["expires_at"]
        if ends is not None and ends <= now() and self.instance.pk is None:
            raise forms.ValidationError("Say a time in the future, or leave it empty: never.")
        return ends


@admin.register(ApiKey)
class ApiKeyAdmin(ScopedModelAdmin[ApiKey]):
    """The key itself exists only in the answer to the form that made it."""

    form = ApiKeyForm
    actions = ["revoke"]
    list_display = [
        "name",
        "prefix",
        "project",
        "may",
        "created_at",
        "latest_used_at",
        "expires_at",
        "revoked_at",
    ]
    list_filter = ["project", ("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["project"]
    ordering = ["-created_at", "-id"]
    search_fields = ["name", "prefix"]
    search_help_text = "Part of a name, or the first characters of a key."

    @admin.display(description="scopes")
    def may(self, row: ApiKey) -> str:
        """The scopes of the key in one line."""
        return ", ".join(row.scopes)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """What is known of a key, or what a new one needs."""
        if obj is None:
            return ["project", "name", "scopes", "expires_at"]
        known = ["created_at", "latest_used_at", "revoked_at"]
        return ["project", "name", "prefix", "scopes", "expires_at", *known]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        """Name and scopes may change; the key and whose data it reaches may not."""
        known = ["prefix", "created_at", "latest_used_at", "revoked_at"]
        return known if obj is None else ["project", *known]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Most keys are for the default project."""
        return {"project": Project.objects.filter(is_default=True).first()}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """One way to save: a new key is followed by the page that shows it."""
        context.update(show_save_and_add_another=False, show_save_and_continue=False)
        return super().render_change_form(request, context, *args, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """A revoked key is only to be looked at."""
        is_over = obj is not None and obj.revoked_at is not None
        return super().has_change_permission(request, obj) and not is_over

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Keys are revoked, not deleted: calls keep the name of their caller."""
        return False

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Make the secret of a new key, and hold it for the answer only."""
        if not change:
            obj._secret = obj.issue()  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key in the answer itself: a message would be stored until the next page."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"API key {obj.name}",
            "opts": self.opts,
            "secret": obj._secret,  # type: ignore[attr-defined]
            "row": obj,
        }
        response = TemplateResponse(request, "admin/helmdash/key_made.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(permissions=["change"], description="Revoke selected keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """End keys at once, after asking: it cannot be undone. None: done, and back to the list."""
        allowed = [row.pk for row in queryset if self.has_change_permission(request, row)]
        active = queryset.filter(pk__in=allowed, revoked_at__isnull=True)
        if not active.exists():
            messages.info(request, "Nothing was changed: these keys are revoked already.")
            return None
        if request.POST.get("confirmed"):
            ended = self._end(request, active)
            messages.success(request, f"{ended} revoked. Requests with them get 401 from now on.")
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Revoke API keys",
            "opts": self.opts,
            "rows": list(active.select_related("project")),
        }
        return TemplateResponse(request, "admin/helmdash/revoke_keys.html", context)

    def _end(self, request: HttpRequest, active: QuerySet[ApiKey]) -> int:
        with transaction.atomic():
            rows = list(active.select_for_update())
            for row in rows:
                before = values_of(row)
                row.revoked_at = now()
                row.save(update_fields=["revoked_at"])
                self.log_change(request, row, "Revoked.")
                note_row(actor=person_of(request.user), row=row, before=before)
        return len(rows)
