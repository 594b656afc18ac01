"""Plans and routes, to look at: each with its steps and the calls that made it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from helmdash.records.admin.big_tables import ProjectFilter, ReadOnlyAdmin, seen_filter
from helmdash.records.admin.scoped import ScopedTabularInline
from helmdash.records.models import PlanAttempt, PlanRecord, PlanStep


class _Shown(ScopedTabularInline[Any, PlanRecord]):
    """Rows below a plan, which nobody edits."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits."""
        return False


class StepInline(_Shown):
    """What a plan told to do, one row a step; not to be edited."""

    model = PlanStep
    fields = ["position", "entry", "asked", "gap", "args", "rationale"]
    ordering = ["position"]


class AttemptInline(_Shown):
    """The calls, in order."""

    model = PlanAttempt
    fields = [
        "number",
        "purpose",
        "model",
        "prompt_variant",
        "reason",
        "finish_reason",
        "cause",
        "latency_ms",
        "prompt_bytes",
        "catalog_bytes",
        "call_name",
    ]
    ordering = ["number"]


@admin.register(PlanRecord)
class PlanAdmin(ReadOnlyAdmin[PlanRecord]):
    """Plans of one project, newest first (index `plan_by_time`)."""

    list_display = [
        "name",
        "started_at",
        "kind",
        "model",
        "prompt_variant",
        "complexity",
        "outcome",
        "cause",
        "step_count",
        "gap_count",
        "latency_ms",
        "caller",
    ]
    list_filter = [ProjectFilter, seen_filter("model", of=PlanRecord)]
    ordering = ["-started_at", "-id"]
    search_help_text = "The beginning of a plan's id."
    exclude = ["sketch"]  # hashes of words, which tell nobody anything
    inlines = [StepInline, AttemptInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlanRecord]:
        """Without the texts, unless one plan is looked at: each may be many kilobytes."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return rows.defer("intent", "sketch", "result") if is_list else rows
