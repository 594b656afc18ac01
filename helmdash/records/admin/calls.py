"""Recorded calls, conversations, fits and level changes, to look at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.records.admin.big_tables import (
    ProjectFilter,
    ReadOnlyAdmin,
    seen_filter,
    words_filter,
)
from helmdash.records.call_names import calls_at, find_beginning
from helmdash.records.models import Call, Conversation, Fit, HealthChange
from helmdash.records.models.conversations import LEVEL_WORDS


def _cause(cause: str) -> Q:
    # SQLite takes a partial index only where its condition is said again.
    return Q(cause=cause) & ~Q(cause="")


def _finish_reason(reason: str) -> Q:
    wanted = Q(finish_reason=reason)
    return wanted if reason == FinishReason.STOP else wanted & ~Q(finish_reason="stop")


def _severity(level: str) -> Q:
    # The index of conversations has the level as a number.
    return Q(severity=LEVELS[Level(level)].severity)


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin[Call]):
    """Calls of one project, newest first, as the index `call_by_time` has them."""

    list_display = [
        "name",
        "started_at",
        "model",
        "pack",
        "purpose",
        "conversation",
        "generation",
        "prompt_tokens",
        "level",
        "finish_reason",
        "cause",
    ]
    list_filter = [
        ProjectFilter,
        words_filter("level", LEVEL_WORDS),
        words_filter("cause", [cause.value for cause in FailureCause], where=_cause),
        words_filter(
            "finish_reason", [reason.value for reason in FinishReason], where=_finish_reason
        ),
        seen_filter("model_key"),
        seen_filter("client_name"),
        seen_filter("pack"),
        seen_filter("purpose"),
    ]
    list_select_related = ["conversation"]
    ordering = ["-started_at", "-id"]
    search_help_text = "The beginning of a call's id."

    def beginning(
        self, queryset: QuerySet[Any], project_id: int, text: str, most: int
    ) -> QuerySet[Any]:
        """By the table of names, which lead to the calls."""
        return calls_at(project_id, find_beginning(project_id, text, most), among=queryset)


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin[Conversation]):
    """Conversations of one project, the latest first (index `conversation_by_time_and_name`)."""

    list_display = [
        "name",
        "latest_at",
        "model",
        "generation",
        "round_number",
        "prompt_tokens",
        "limit_tokens",
        "level",
        "failures",
        "trims",
    ]
    list_filter = [
        ProjectFilter,
        words_filter("level", LEVEL_WORDS, where=_severity),
        seen_filter("model_key"),
    ]
    ordering = ["-latest_at", "-id"]
    search_help_text = "The beginning of a conversation's id."


@admin.register(Fit)
class FitAdmin(ReadOnlyAdmin[Fit]):
    """Fits of one project, newest first (index `fit_by_time`)."""

    list_display = [
        "name",
        "created_at",
        "model",
        "catalog_name",
        "before_bytes",
        "after_bytes",
        "fits",
        "caller",
    ]
    list_filter = [ProjectFilter]
    ordering = ["-created_at", "-id"]
    search_help_text = "The beginning of a fit's id."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fit]:
        """Without the receipts, unless one fit is looked at: each may be many kilobytes."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return rows.defer("trim", "budget", "intent") if is_list else rows


@admin.register(HealthChange)
class HealthChangeAdmin(ReadOnlyAdmin[HealthChange]):
    """Level changes, those of the newest conversations first: the order of their only index."""

    list_display = ["conversation", "generation", "from_level", "to_level", "at"]
    list_display_links = ["generation"]
    list_filter = [ProjectFilter]
    list_select_related = ["conversation"]
    # The whole of the unique key: with less, Django would add the id, which the index has not.
    ordering = ["-project_id", "-conversation_id", "-generation"]
    searched = ""
