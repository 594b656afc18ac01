"""Projects in the admin: one default, their members, and demo data that nobody edits."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from helmdash import conf
from helmdash.core.care.guidance import text_problems
from helmdash.core.text.own_patterns import MOST_PATTERNS, pattern_problems
from helmdash.installation import COMMAND
from helmdash.records.access.rights import person_of
from helmdash.records.admin.members import MemberInline
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.admin.typed import ModelForm
from helmdash.records.models import Call, CatalogRevision, Conversation, Fit, Project, Upstream


class ProjectForm(ModelForm[Project]):
    """The default moves by ticking the box of another project, never by clearing this one's."""

    redaction_patterns = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        label="Own patterns to mask",
        help_text=r"One a line, such as EMP-\d{6} or (?i)project bluebird: masked in errors and in "
        f"texts that are kept redacted. At most {MOST_PATTERNS}, of a kind that stays fast.",
    )

    class Meta:
        model = Project
        fields = (
            "slug",
            "name",
            "is_default",
            "payload",
            "retention_days",
            "text_days",
            "redaction_patterns",
            "current_catalog",
            "budget_mode",
            "default_upstream",
            "remediation",
            "soft_text",
            "hard_text",
            "critical_text",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer_own_catalogs()
        if "redaction_patterns" in self.fields:
            self.initial["redaction_patterns"] = "\n".join(self.instance.redaction_patterns or ())
        if self.instance.is_default and "is_default" in self.fields:
            box = self.fields["is_default"]
            box.disabled = True
            box.help_text = "The default project. To change that, tick the box of another one."

    def clean_default_upstream(self) -> str:
        """The name of an upstream that the project can call, or "". Raises ValidationError for
        another."""
        name = str(self.cleaned_data["default_upstream"]).strip()
        if name and not self._is_served(name):
            raise ValidationError(
                "No enabled upstream has this name. Use one that does, or leave it empty."
            )
        return name

    def clean_redaction_patterns(self) -> list[str] | None:
        """Patterns that stay fast on every text, one a line; none: None. Raises ValidationError
        naming those that do not."""
        lines = str(self.cleaned_data["redaction_patterns"] or "").splitlines()
        patterns = [line.strip() for line in lines if line.strip()]
        problems = pattern_problems(patterns)
        if problems:
            raise ValidationError(list(problems))
        return patterns or None

    def clean_soft_text(self) -> str:
        """A text that can be given as guidance."""
        return self._guidance("soft_text")

    def clean_hard_text(self) -> str:
        """As `clean_soft_text`: raises ValidationError for a placeholder that does not exist."""
        return self._guidance("hard_text")

    def clean_critical_text(self) -> str:
        """As `clean_soft_text`: raises ValidationError for a placeholder that does not exist."""
        return self._guidance("critical_text")

    def _guidance(self, name: str) -> str:
        text = str(self.cleaned_data[name]).replace("\r\n", "\n").strip()
        problems = text_problems(text)
        if problems:
            raise ValidationError(list(problems))
        return text

    def _is_served(self, name: str) -> bool:
        """The project's own row counts before one for all, and both before the environment."""
        visible = Q(project__isnull=True)
        if self.instance.pk is not None:
            visible |= Q(project_id=self.instance.pk)
        rows = Upstream.objects.filter(visible, name=name)
        row = min(rows, key=lambda row: row.project_id is None, default=None)
        if row is not None:
            return row.enabled
        return any(endpoint.name == name for endpoint in conf.environment_upstreams())

    def _get_validation_exclusions(self) -> set[str]:
        """Saving takes the mark from the project that has it, so it is free by then."""
        return {*super()._get_validation_exclusions(), "is_default"}  # type: ignore[misc]

    def _offer_own_catalogs(self) -> None:
        field: Any = self.fields.get("current_catalog")
        if field is not None:
            own = CatalogRevision.objects.filter(project_id=self.instance.pk).defer("body")
            field.queryset = own.order_by("name", "-number")


@admin.register(Project)
class ProjectAdmin(ScopedModelAdmin[Project]):
    """Projects: the settings of each tenant."""

    form = ProjectForm
    actions = None
    inlines = [MemberInline]
    list_display = ["name", "slug", "is_default", "is_demo", "payload", "keep", "current_catalog"]
    list_select_related = ["current_catalog"]
    ordering = ["-is_default", "is_demo", "name"]
    search_fields = ["slug", "name"]

    @admin.display(description="calls are kept")
    def keep(self, row: Project) -> str:
        """Retention in words."""
        return f"{row.retention_days} days" if row.retention_days else "for ever"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        """Without the catalogs themselves."""
        return super().get_queryset(request).defer("current_catalog__body")

    def has_change_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        """Demo data is loaded and removed as a whole, by `demo load` and `demo remove`."""
        is_demo = obj is not None and obj.is_demo
        return super().has_change_permission(request, obj) and not is_demo

    def has_delete_permission(self, request: HttpRequest, obj: Project | None = None) -> bool:
        """Only a project that nobody needs and that holds no records."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or _why_kept(obj) is None)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Say why a project stays, instead of "forbidden"."""
        row = self.get_object(request, object_id)
        why = _why_kept(row) if row else None
        if why and self.has_delete_permission(request):
            messages.error(request, why)
            url = reverse(f"{self.admin_site.name}:records_project_change", args=[object_id])
            return HttpResponseRedirect(url)
        return super().delete_view(request, object_id, extra_context)

    def get_readonly_fields(self, request: HttpRequest, obj: Project | None = None) -> list[str]:
        """Which project is the default one, and what it is called in links, concerns all others."""
        is_root = person_of(request.user).is_superuser
        return [] if is_root else ["slug", "is_default"]

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        """Move the mark of the default project, in the transaction of the save."""
        if obj.is_default:
            Project.objects.filter(is_default=True).exclude(pk=obj.pk).update(is_default=False)
        super().save_model(request, obj, form, change)


def _why_kept(project: Project) -> str | None:
    if project.is_default:
        return "The default project cannot be deleted. Make another one the default first."
    if project.is_demo:
        return f"Demo data is removed by `{COMMAND} demo remove`."
    for rows in (Call.objects, Conversation.objects, Fit.objects):
        if rows.filter(project=project).exists():
            return (
                f"{project.name} holds recorded calls, conversations or fits, and is kept with "
                "them. Set retention_days to have old ones deleted."
            )
    return None
