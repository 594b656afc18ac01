"""Budgets in the admin: what each row rules, its edits, and the fallback that must stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected as delete_selected_rows
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import Truncator

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.budgets.figures import Section
from helmdash.records.admin.budgets.form import PREVIEW, BudgetForm, is_fallback
from helmdash.records.admin.budgets.notes import notes_of
from helmdash.records.admin.budgets.preview import preview
from helmdash.records.admin.budgets.tables import SEEN_DAYS, models_by_budget
from helmdash.records.admin.clock import now
from helmdash.records.admin.files.resources import AliasResource, BudgetResource
from helmdash.records.admin.files.transfer import TransferMixin
from helmdash.records.admin.history import HistoryMixin
from helmdash.records.admin.scoped import ScopedModelAdmin
from helmdash.records.models import Budget, BudgetAlias

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts

_KEPT = (
    "The fallback was not deleted: it governs every model without a row of its own. "
    "Edit its numbers instead."
)
# Models named in one cell of the list; the rest are counted.
# Of a model's name in a narrow column; ids of real models have half of it.
_MOST_CHARS = 64
_MOST_MODELS = 5


# What is said above the fields of a part of the form.
_SAID = {
    Section.ROW: "An edit rules the next fit and the next recorded call.",
    Section.SIZE: "What a prompt is fitted into. Everything that is sent counts as input; the "
    "answer does not.",
    Section.TRUST: "How a task is set to the model. An id that ends in :free is treated as tier C "
    "with 10,000 catalog bytes, whatever is set here.",
    Section.HEALTH: "Where a conversation turns yellow and red. The limit is the smaller known "
    "length; without one, the input tokens above. The caution line must be below the critical one, "
    "and that at most the limit.",
    Section.ESTIMATE: "tokens = bytes / bytes per token * safety multiplier, both rounded up.",
    Section.COST: "",
}
_COLLAPSED = {Section.ESTIMATE, Section.COST}


def _fieldset(section: Section) -> tuple[str | None, _FieldOpts]:
    fields: list[Any] = [each.name for each in STORED_FIELDS if each.label.section is section]
    if section is Section.ROW:
        # Whose the row is, is no figure of it.
        return None, {"fields": ["project", *fields], "description": _SAID[section]}
    return section.value, {
        "fields": fields,
        "description": _SAID[section],
        "classes": ["collapse"] if section in _COLLAPSED else [],
    }


class BudgetChangeList(ChangeList):
    """Looks once for all rows of the page which models they govern."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page and put the models beside each row."""
        super().get_results(request)
        seen = models_by_budget(now=now())
        rows: list[Any] = list(self.result_list)
        for row in rows:
            row.models_seen = seen.get(row.pk, ())
        self.result_list = rows


@admin.register(Budget)
class BudgetAdmin(HistoryMixin, TransferMixin, ScopedModelAdmin[Budget]):
    """One row for each model id or prefix, and the fallback."""

    form = BudgetForm
    change_form_template = "admin/helmdash/budget_form.html"
    resource_classes = [BudgetResource]
    actions = ["delete_selected"]
    list_display = [
        "name",
        "letter",
        "governs",
        "input",
        "output",
        "catalog",
        "context",
        "flags",
        "enabled",
        "of_project",
        "edited",
    ]
    list_filter = ["tier", "enabled", "project"]
    list_select_related = ["project"]
    list_per_page = 200
    ordering = ["key", "id"]
    search_fields = ["key", "evidence"]
    search_help_text = "Part of a key or of its evidence."
    readonly_fields = ["created_at", "updated_at"]
    fieldsets = [
        *map(_fieldset, Section),
        ("Dates", {"fields": ["created_at", "updated_at"], "classes": ["collapse"]}),
    ]

    @admin.display(description="key", ordering="key")
    def name(self, row: Budget) -> str:
        """The key, or a word for the empty one."""
        return str(row)

    @admin.display(description="project", ordering="project")
    def of_project(self, row: Budget) -> str:
        """The project a row is of; "every" for a global row."""
        return str(row.project) if row.project else "every"

    @admin.display(description="edited", ordering="updated_at")
    def edited(self, row: Budget) -> str:
        """The day of its newest edit, in UTC."""
        return f"{row.updated_at:%Y-%m-%d}"

    @admin.display(description="tier", ordering="tier")
    def letter(self, row: Budget) -> str:
        """The tier without its explanation, which the filter beside the list has."""
        return row.tier

    @admin.display(description="input tokens", ordering="input_tokens")
    def input(self, row: Budget) -> str:
        """The safe ceiling of a whole prompt, in tokens."""
        return _count(row.input_tokens)

    @admin.display(description="output tokens", ordering="output_tokens")
    def output(self, row: Budget) -> str:
        """The recommended output limit, in tokens."""
        return _count(row.output_tokens)

    @admin.display(description="catalog bytes", ordering="max_catalog_bytes")
    def catalog(self, row: Budget) -> str:
        """Largest catalog; 0 is no limit at all."""
        return _count(row.max_catalog_bytes) if row.max_catalog_bytes else "whole"

    @admin.display(description="context tokens", ordering="context_length")
    def context(self, row: Budget) -> str:
        """Advertised window, where it is known."""
        return _count(row.context_length) if row.context_length is not None else "unknown"

    @admin.display(description="flags")
    def flags(self, row: Budget) -> str:
        """What is switched on, in words."""
        return ", ".join(row.to_core().abilities)

    @admin.display(description=f"models seen, {SEEN_DAYS} days")
    def governs(self, row: Budget) -> str:
        """Models that were called lately and that this row governs."""
        models: Sequence[str] = getattr(row, "models_seen", ())
        rest = len(models) - _MOST_MODELS
        named = [Truncator(model).chars(_MOST_CHARS) for model in models[:_MOST_MODELS]]
        return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that knows which models a row governs."""
        return BudgetChangeList

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the notes about the row and, if asked for, the preview."""
        form = context["adminform"].form
        if form.instance.pk:
            context["notes"] = notes_of(form.instance)
        if PREVIEW in request.POST and not form.errors:
            context["preview"] = preview(form.instance)
        row = form.instance if form.instance.pk else None
        may = self.has_change_permission(request, row) if row else self.has_add_permission(request)
        context["may_preview"] = may
        return super().render_change_form(request, context, *args, **kwargs)

    def response_add(self, request: HttpRequest, obj: Budget, *args: Any) -> HttpResponse:
        """Point out which rows share models with the new one."""
        response = super().response_add(request, obj, *args)
        self._say_notes(request, obj)
        return response

    def response_change(self, request: HttpRequest, obj: Budget) -> HttpResponse:
        """Point out which rows share models with this one now."""
        response = super().response_change(request, obj)
        self._say_notes(request, obj)
        return response

    def has_delete_permission(self, request: HttpRequest, obj: Budget | None = None) -> bool:
        """Nobody deletes the fallback."""
        return super().has_delete_permission(request, obj) and not is_fallback(obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Explain instead of "forbidden" when it is about the fallback."""
        row = self.get_object(request, object_id)
        if is_fallback(row) and self.has_delete_permission(request):
            messages.error(request, _KEPT)
            url = reverse(f"{self.admin_site.name}:records_budget_change", args=[object_id])
            return HttpResponseRedirect(url)
        return super().delete_view(request, object_id, extra_context)

    @admin.action(permissions=["delete"], description="Delete selected budgets")
    def delete_selected(
        self, request: HttpRequest, queryset: QuerySet[Budget]
    ) -> HttpResponse | None:
        """Django's action, for all but the fallback. Gives its page of confirmation; None: back to
        the list."""
        others = queryset.exclude(key="", project=None)
        if others.count() < queryset.count():
            messages.warning(request, _KEPT)
            if not others.exists():
                return None
        answer: HttpResponse | None = delete_selected_rows(self, request, others)
        return answer

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        """Whatever led here, the fallback stays."""
        super().delete_queryset(request, queryset.exclude(key="", project=None))

    def revert_problem(self, current: Budget | None, version: Budget) -> str | None:
        """Why the version must not come back: the fallback has to stay the fallback. None: it may.
        current None: the row was deleted."""
        if is_fallback(current) and not is_fallback(version):
            return "key: the fallback's key must stay empty."
        return None

    def _say_notes(self, request: HttpRequest, row: Budget) -> None:
        for note in notes_of(row):
            messages.warning(request, note)


@admin.register(BudgetAlias)
class BudgetAliasAdmin(HistoryMixin, TransferMixin, ScopedModelAdmin[BudgetAlias]):
    """Other spellings of model ids."""

    resource_classes = [AliasResource]
    list_display = ["prefix", "target"]
    ordering = ["prefix", "id"]
    search_fields = ["prefix", "target"]
    search_help_text = "Part of either spelling."


def _count(number: int) -> str:
    return f"{number:,}"
