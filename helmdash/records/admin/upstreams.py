"""Upstreams in the admin: where calls may go, and with which key.

A key goes in and never comes out: no page, message, log line or history entry has it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse

from helmdash import conf
from helmdash.core.access.permissions import Person
from helmdash.core.upstreams.addresses import origin_of, shown_url, url_problem
from helmdash.core.upstreams.endpoints import FORMATS_OF_KIND, ProviderKind, WireFormat
from helmdash.core.upstreams.upstream_variables import key_variable_problem
from helmdash.records.access.rights import person_of
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.admin.typed import ModelForm
from helmdash.records.models import Upstream

# Variables hold the operator's keys, and addresses behind the firewall are the operator's, too: an
# owner of a project who could name them would get at what is not the project's.
_SUPERUSERS_ONLY = {
    "key_variable": "Variables are the operator's: a superuser may name one. Enter a key below.",
    "allow_private": "Whether its address may be in a private network. For superusers to say.",
}
_MOST_KEY_CHARS = 4096  # a long JSON web token
_MOST_MODEL_CHARS = 255  # as `model` of a call
_MOST_MODELS = 1000  # OpenRouter lists about 400


class UpstreamForm(ModelForm[Upstream]):
    """A key is typed or left alone; what is stored is never shown."""

    base_url = forms.CharField(
        label="Base URL",
        max_length=500,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text="Such as https://api.openai.com/v1 or http://127.0.0.1:11434.",
    )
    formats = forms.MultipleChoiceField(
        required=False,
        choices=[(each.value, each.value) for each in WireFormat],
        widget=forms.CheckboxSelectMultiple,
        help_text="Those that it speaks. None: its own, and whether a host of the kind openai "
        "speaks the Responses API is found out.",
    )
    key = forms.CharField(
        required=False,
        max_length=_MOST_KEY_CHARS,
        widget=forms.PasswordInput(attrs={"class": "vTextField", "autocomplete": "new-password"}),
        help_text="None is stored. It is encrypted, and never shown again.",
    )
    forget_key = forms.BooleanField(
        label="Forget the stored key", required=False, help_text="The upstream is called without."
    )

    class Meta:
        model = Upstream
        fields = (
            "project",
            "name",
            "kind",
            "formats",
            "base_url",
            "key_variable",
            "models_served",
            "allow_private",
            "read_timeout_s",
            "enabled",
        )
        labels: ClassVar[dict[str, str]] = {"read_timeout_s": "Read timeout, seconds"}

    # Who fills it in (records.admin.scoped).
    person = Person(name="")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["formats"] = self.instance.formats.split()
        if not self.person.is_superuser:
            for name, why in _SUPERUSERS_ONLY.items():
                if name in self.fields:
                    # A disabled field keeps its value whatever a request says.
                    self.fields[name].disabled = True
                    self.fields[name].help_text = why
        sealed = self.instance.key_encrypted
        if "key" not in self.fields:
            return  # somebody who may only look
        if not sealed:
            del self.fields["forget_key"]
        elif unseal(sealed) is None:
            self.fields["key"].help_text = (
                "The stored key cannot be read any more: the signing key has changed. "
                "Enter it again."
            )
        else:
            self.fields["key"].help_text = "Stored. Type to replace it, or leave this empty."

    def _get_validation_exclusions(self) -> set[str]:
        """The model's field wants a dot in host names; `http://ollama:11434` is a good one."""
        return {*super()._get_validation_exclusions(), "base_url"}  # type: ignore[misc]

    def clean_base_url(self) -> str:
        """Without the slash at its end, since paths are put behind it."""
        return str(self.cleaned_data["base_url"]).strip().rstrip("/")

    def clean_formats(self) -> str:
        """As they are stored: words."""
        return " ".join(self.cleaned_data["formats"])

    def clean_key_variable(self) -> str:
        """Only variables that hold keys of providers may be sent to one; others raise
        ValidationError."""
        variable = str(self.cleaned_data["key_variable"]).strip()
        problem = key_variable_problem(variable) if variable else None
        if problem:
            raise forms.ValidationError(problem)
        return variable

    def clean_key(self) -> str:
        """A key travels in a header: one word of plain characters, else ValidationError."""
        key = str(self.cleaned_data["key"]).strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise forms.ValidationError("A key is one word of ASCII characters.")
        return key

    def clean_models_served(self) -> str:
        """Ids or globs, one a line, without repeats. Raises ValidationError for what is neither."""
        lines = [line.strip() for line in str(self.cleaned_data["models_served"]).splitlines()]
        ids = list(dict.fromkeys(line for line in lines if line))
        for each in ids:
            if len(each) > _MOST_MODEL_CHARS or any(char.isspace() for char in each):
                raise forms.ValidationError(f"{each[:60]!r} is not one model id. One a line.")
        if len(ids) > _MOST_MODELS:
            raise forms.ValidationError(
                f"At most {_MOST_MODELS:,} ids. Use `*`, or leave it empty to ask the upstream."
            )
        return "\n".join(ids)

    def clean(self) -> dict[str, Any]:
        """What concerns more than one field."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("base_url"):
            problem = url_problem(
                values["base_url"], allow_private=bool(values.get("allow_private"))
            )
            if problem:
                self.add_error("base_url", problem)
            elif self._would_leak(values):
                self.add_error(
                    "key",
                    "The base URL leads to another host: type it again, or have it forgotten.",
                )
        if values.get("key") and values.get("key_variable"):
            self.add_error("key", "Give a key or the variable that holds it, not both.")
        if values.get("key") and values.get("forget_key"):
            self.add_error("forget_key", "A key is typed above. Clear one of the two.")
        problem = _formats_problem(values)
        if problem:
            self.add_error("formats", problem)
        if values.get("name") and self._is_taken(values):
            whose = values["project"] or "every project"
            self.add_error("name", f"There is an upstream of this name for {whose} already.")
        return values

    def save(self, commit: bool = True) -> Upstream:
        """Encrypt a typed key. Naming a variable, or ticking the box, forgets the stored one."""
        values = self.cleaned_data
        if values.get("key"):
            self.instance.key_encrypted = seal(values["key"])
        elif values.get("key_variable") or values.get("forget_key"):
            self.instance.key_encrypted = ""
        row: Upstream = super().save(commit)
        return row

    def _would_leak(self, values: dict[str, Any]) -> bool:
        """Whether the stored key would be sent to a host that whoever typed it did not name."""
        # Until it is validated the instance is as it was stored.
        row = self.instance
        is_left = not any(values.get(name) for name in ("key", "forget_key", "key_variable"))
        is_moved = origin_of(row.base_url) != origin_of(values["base_url"])
        return bool(row.key_encrypted) and is_left and is_moved

    def _is_taken(self, values: dict[str, Any]) -> bool:
        same = Upstream.objects.filter(name=values["name"], project=values.get("project"))
        return same.exclude(pk=self.instance.pk).exists()


@admin.register(Upstream)
class UpstreamAdmin(ScopedModelAdmin[Upstream]):
    """Endpoints that the gateway may call. Those of the environment are not rows."""

    form = UpstreamForm
    change_form_template = "admin/helmdash/upstream_form.html"
    list_display = ["name", "kind", "address", "key_from", "enabled", "of_project"]
    list_filter = ["enabled", "kind", "project"]
    list_select_related = ["project"]
    ordering = ["name", "id"]
    search_fields = ["name", "base_url"]
    search_help_text = "Part of a name or base URL."
    readonly_fields = ["created_at", "updated_at"]

    def has_change_permission(self, request: HttpRequest, obj: Upstream | None = None) -> bool:
        """A row that a superuser lent a variable or a private address is theirs to change.

        Its owner could otherwise have the operator's key sent to another address.
        """
        is_lent = obj is not None and bool(obj.key_variable or obj.allow_private)
        is_theirs = person_of(request.user).is_superuser
        return super().has_change_permission(request, obj) and (is_theirs or not is_lent)

    @admin.display(description="base URL", ordering="base_url")
    def address(self, row: Upstream) -> str:
        """Without what could be a password."""
        return shown_url(row.base_url)

    @admin.display(description="key")
    def key_from(self, row: Upstream) -> str:
        """Where the key comes from, never the key."""
        if row.key_variable:
            is_set = conf.environment_key(row.key_variable) is not None
            return f"variable {row.key_variable} ({'set' if is_set else 'not set'})"
        if not row.key_encrypted:
            return "none"
        is_lost = unseal(row.key_encrypted) is None
        return "stored, but unreadable: enter it again" if is_lost else "stored"

    @admin.display(description="project", ordering="project")
    def of_project(self, row: Upstream) -> str:
        """Whose calls may use it."""
        return str(row.project) if row.project else "every"

    def get_fields(self, request: HttpRequest, obj: Upstream | None = None) -> Any:
        """The key beside the variable; a box to forget it only where there is one."""
        fields = ["project", "name", "kind", "formats", "base_url", "key_variable"]
        if self.has_change_permission(request, obj):
            fields.append("key")
            if obj is not None and obj.key_encrypted:
                fields.append("forget_key")
        fields += ["models_served", "allow_private", "read_timeout_s", "enabled"]
        return fields if obj is None else [*fields, "created_at", "updated_at"]

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Upstream | None = None,
    ) -> HttpResponse:
        """Offer the test of a stored upstream, where this server has that page."""
        if obj is not None:
            context["test_url"] = _test_url(obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def save_model(self, request: HttpRequest, obj: Upstream, form: Any, change: bool) -> None:
        """Point out what is allowed, but likely not meant."""
        super().save_model(request, obj, form, change)
        if obj.kind == ProviderKind.OPENAI and obj.base_url.count("/") == 2:
            messages.warning(
                request, f"{obj.base_url} has no path. Most OpenAI-compatible hosts want /v1."
            )
        if obj.key_variable and conf.environment_key(obj.key_variable) is None:
            messages.warning(
                request, f"{obj.key_variable} is not set where the server runs: set it and restart."
            )


def _formats_problem(values: dict[str, Any]) -> str | None:
    """Why an upstream of this kind cannot speak these formats; None: it can."""
    told = str(values.get("formats") or "").split()
    if not told or not values.get("kind"):
        return None
    possible = [each.value for each in FORMATS_OF_KIND[ProviderKind(values["kind"])]]
    if set(told) <= set(possible):
        return None
    return f"An upstream of the kind {values['kind']} may speak {' and '.join(possible)}."


def _test_url(row: Upstream) -> str | None:
    # The test calls out, so it is a page's affair; the admin stays with the tables.
    try:
        return reverse("test-upstream", args=[row.pk])
    except NoReverseMatch:
        return None
