"""Edits of budgets that recorded calls suggest, what became of each, and of which models they were
made last."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.core.budgets.model_names import KEY_CHARS
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.suggested import UNDECIDED, SuggestionState
from helmdash.records.fields import one_of, word_field
from helmdash.records.models.access import Project


class Suggestion(models.Model):
    """One figure of one model's budget: a row stays when it is decided, and while nothing new is
    found."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    model_key = models.CharField(max_length=KEY_CHARS)
    # As it was spelt last: what the budget is looked up by.
    model = models.CharField(max_length=255)
    upstream = word_field(64)  # empty: all of them
    figure = models.CharField(max_length=20)
    state = models.CharField(max_length=10, default=SuggestionState.OPEN.value)
    changes = models.JSONField(help_text="Columns of the budget, and what they are to be.")
    today = models.JSONField(help_text="The same columns as they were when it was made.")
    evidence = models.JSONField(help_text="core.evidence.suggested.Evidence")
    made_at = models.DateTimeField()
    refreshed_at = models.DateTimeField(help_text="When the calls last showed it.")
    decided_at = models.DateTimeField(null=True)
    decided_by = word_field(150)
    reason = word_field(500)
    # Of one that was accepted: the budget's row, and of the model's calls the clean ones and all,
    # before and since.
    effect = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "model_key", "upstream", "figure"], name="suggestion_figure"
            ),
            one_of("suggestion", "figure", [each.value for each in Figure]),
            one_of("suggestion", "state", [each.value for each in SuggestionState]),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in UNDECIDED])
                | Q(decided_at__isnull=False),
                name="suggestion_decided_at",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model_key}: {self.figure}"


class LearnedModel(models.Model):
    """What a model's suggestions were made of last: they are made anew where that has changed."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    model_key = models.CharField(max_length=KEY_CHARS)
    digest = models.CharField(
        max_length=64, help_text="Of its calls' figures, its budget and the methods."
    )
    learned_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "model_key"], name="learned_model_key")
        ]

    def __str__(self) -> str:
        return self.model_key
