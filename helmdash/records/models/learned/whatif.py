"""What-ifs: edits of budgets that were tried on recorded calls and fits, and what came of them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.records.fields import one_of, word_field
from helmdash.records.models.access import Project

# waiting: for a server's job. cancelled: by somebody; what was counted until then stays.
WHAT_IF_STATES = ["waiting", "running", "done", "cancelled", "failed"]


class WhatIf(models.Model):
    """One question: edits, a range, and the budgets of that moment; with the answer as far as it
    is."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=64, help_text="The id in its address.")
    title = word_field(200)
    edits = models.JSONField(help_text="core.whatif.edits.RowEdit, each as JSON.")
    today = models.JSONField(help_text="Of each edit the figures as they were then.")
    rules = models.TextField(help_text="JSON of core.whatif.snapshot: the budgets of then.")
    since = models.DateTimeField(null=True)
    until = models.DateTimeField()
    state = models.CharField(max_length=10, default="waiting")
    made_by = word_field(150)
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    cancel_by = word_field(150)
    applied_at = models.DateTimeField(null=True)
    applied_by = word_field(150)
    cursor = models.JSONField(null=True, help_text="Where the run goes on.")
    steps_done = models.PositiveBigIntegerField(default=0)
    steps_all = models.PositiveBigIntegerField(null=True)
    totals = models.JSONField(null=True, help_text="core.whatif.totals.Totals, so far.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="what_if_name"),
            one_of("what_if", "state", WHAT_IF_STATES),
        ]
        indexes = [
            # What a server is to do next, in any project.
            models.Index(
                fields=["id"],
                condition=Q(state__in=["waiting", "running"]),
                name="what_if_to_do",
            ),
        ]

    def __str__(self) -> str:
        return self.name
