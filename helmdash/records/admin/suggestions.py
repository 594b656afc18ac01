"""Suggested edits of budgets, to look at: they are decided on the budgets page."""

from __future__ import annotations

from django.contrib import admin

from helmdash.records.admin.big_tables import ProjectFilter, ReadOnlyAdmin
from helmdash.records.models import Suggestion


@admin.register(Suggestion)
class SuggestionAdmin(ReadOnlyAdmin[Suggestion]):
    """Suggestions of one project, newest first."""

    list_display = [
        "model",
        "upstream",
        "figure",
        "state",
        "changes",
        "today",
        "made_at",
        "decided_at",
        "decided_by",
        "reason",
    ]
    list_filter = [ProjectFilter, "state", "figure"]
    ordering = ["-id"]
    search_help_text = "The beginning of a model's key."
    searched = "model_key"
