"""Exporters in the admin: where recorded calls go. For superusers, for they see every address.

Headers go in and never come out, as keys of upstreams.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from helmdash.conf.header_list import parse_headers
from helmdash.core.upstreams.addresses import origin_of, shown_url, url_problem
from helmdash.records.access.rights import person_of
from helmdash.records.access.secrets import seal
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.admin.typed import ModelForm
from helmdash.records.models import Exporter

_MOST_HEADER_CHARS = 8000
_FIGURES = ("exported", "refused", "exported_at", "failures", "next_try_at", "latest_problem")


class ExporterForm(ModelForm[Exporter]):
    """Headers are typed or left alone; what is stored is never shown."""

    url = forms.CharField(
        label="URL",
        max_length=500,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text="Its OTLP/HTTP address; /v1/traces is put behind it where it is missing.",
    )
    headers = forms.CharField(
        required=False,
        max_length=_MOST_HEADER_CHARS,
        widget=forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password"}),
        help_text="As name=value with commas between, such as Authorization=Bearer%20KEY. They "
        "are encrypted, and never shown again; type to replace those that are stored.",
    )
    forget_headers = forms.BooleanField(label="Forget the stored headers", required=False)

    class Meta:
        model = Exporter
        fields = ("name", "project", "url", "allow_private", "enabled")

    def clean_headers(self) -> str:
        """What can be sent as headers, else ValidationError."""
        text = str(self.cleaned_data["headers"])
        try:
            parse_headers(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return text

    def clean(self) -> dict[str, Any]:
        """What concerns more than one field."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("url"):
            allows = bool(values.get("allow_private"))
            problem = url_problem(values["url"].rstrip("/"), allow_private=allows)
            if problem:
                self.add_error("url", problem)
            # Until it is validated the instance is as it was stored.
            row = self.instance
            is_left = not values.get("headers") and not values.get("forget_headers")
            if row.headers_encrypted and is_left and origin_of(row.url) != origin_of(values["url"]):
                self.add_error(
                    "headers",
                    "The URL leads to another host: type them again, or have them forgotten.",
                )
        return values

    def save(self, commit: bool = True) -> Exporter:
        """Encrypt typed headers; whoever mends a row has it tried at once."""
        values = self.cleaned_data
        if values.get("headers"):
            self.instance.headers_encrypted = seal(values["headers"])
        elif values.get("forget_headers"):
            self.instance.headers_encrypted = ""
        self.instance.next_try_at = None
        row: Exporter = super().save(commit)
        return row


@admin.register(Exporter)
class ExporterAdmin(ScopedModelAdmin[Exporter]):
    """Receivers of OTLP traces. The one of the environment is changed there."""

    form = ExporterForm
    list_display = ["name", "address", "of_project", "enabled", "exported", "failures"]
    list_select_related = ["project"]
    ordering = ["name"]
    readonly_fields = [*_FIGURES, "created_at", "updated_at"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers alone."""
        return person_of(request.user).is_superuser

    def has_view_permission(self, request: HttpRequest, obj: Exporter | None = None) -> bool:
        """Superusers alone."""
        return person_of(request.user).is_superuser

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers alone."""
        return person_of(request.user).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Exporter | None = None) -> bool:
        """Superusers alone; the environment's is the environment's."""
        is_own = obj is None or not obj.is_of_environment
        return person_of(request.user).is_superuser and is_own

    def has_delete_permission(self, request: HttpRequest, obj: Exporter | None = None) -> bool:
        """As for a change. What waits for it goes with it."""
        return self.has_change_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Exporter]:
        """All of them, for those who may see any."""
        rows = Exporter.objects.select_related("project")
        return rows if person_of(request.user).is_superuser else rows.none()

    @admin.display(description="URL", ordering="url")
    def address(self, row: Exporter) -> str:
        """Without what could be a password."""
        return shown_url(row.url)

    @admin.display(description="project", ordering="project")
    def of_project(self, row: Exporter) -> str:
        """Whose calls it gets."""
        return str(row.project) if row.project else "every"

    def get_fields(self, request: HttpRequest, obj: Exporter | None = None) -> Any:
        """Headers where they can be typed; the figures of one that is there."""
        fields = ["name", "project", "url"]
        if self.has_change_permission(request, obj):
            fields.append("headers")
            if obj is not None and obj.headers_encrypted:
                fields.append("forget_headers")
        fields += ["allow_private", "enabled"]
        return fields if obj is None else [*fields, *_FIGURES, "created_at", "updated_at"]
