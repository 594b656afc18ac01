"""Changes of level: a change is a row, not a log line."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import one_of
from helmdash.records.models.access import Project
from helmdash.records.models.conversations import LEVEL_WORDS, Conversation


class HealthChange(models.Model):
    """A conversation's level became another one with this generation."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="health_changes", db_index=False
    )
    generation = models.PositiveBigIntegerField()
    from_level = models.CharField(max_length=10, blank=True, default="")
    to_level = models.CharField(max_length=10)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                # The conversation first: deleting one looks here for what refers to it.
                fields=["conversation", "generation", "project"],
                name="health_change_generation",
            ),
            one_of("health_change", "to_level", LEVEL_WORDS),
            one_of("health_change", "from_level", ["", *LEVEL_WORDS]),
        ]

    def __str__(self) -> str:
        return f"{self.from_level or 'new'} → {self.to_level}"
