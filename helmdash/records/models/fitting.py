"""Fits: a prompt made to fit a budget, with the receipt of what was cut."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.records.fields import name_field
from helmdash.records.models.access import Project


class Fit(models.Model):
    """One answered `POST /fit`: what was asked, what governed it, and its Trim."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=64, help_text="The fit_id of the answer.")
    model = models.CharField(max_length=255)
    # The intent itself only where the project keeps payloads; its hash always.
    intent = models.TextField(blank=True, default="")
    intent_sha = models.CharField(max_length=64)
    catalog_name = models.CharField(max_length=120, blank=True, default="")
    catalog_digest = models.CharField(max_length=64)
    before_bytes = models.PositiveBigIntegerField()
    after_bytes = models.PositiveBigIntegerField()
    fits = models.BooleanField()
    trim = models.JSONField(help_text="Steps, entries kept and removed, timings, versions.")
    # The same steps once more, for lists of thousands: a Trim may be many kilobytes.
    steps = models.JSONField(
        null=True, blank=True, help_text="Steps of the Trim. Null: recorded before they were kept."
    )
    budget = models.JSONField(help_text="The effective budget as it was then.")
    # Where the project keeps texts in full: with intent and catalog enough to make it again.
    inputs = models.JSONField(null=True, help_text="core.fitting.inputs.FitInputs")
    caller = models.CharField(max_length=128, blank=True, default="")
    conversation = name_field(255, "Name of the conversation it was asked for; null: not told.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="fit_name")]
        indexes = [
            models.Index(fields=["project", "created_at", "id"], name="fit_by_time"),
            # What goes with a conversation that is erased.
            models.Index(
                fields=["project", "conversation"],
                condition=Q(conversation__isnull=False),
                name="fit_by_conversation",
            ),
        ]

    def __str__(self) -> str:
        return self.name
