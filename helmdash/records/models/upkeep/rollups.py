"""Figures of many calls, added up by time, and what waits to be added (ADR 32)."""

from __future__ import annotations

from django.db import models

from helmdash.core.rollups.figures import VERSION, Marginal
from helmdash.records.fields import one_of
from helmdash.records.models.access import Project


class Rollup(models.Model):
    """The figures of the calls (or fits) of one period, for one key of a marginal."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    marginal = models.CharField(max_length=10)
    width = models.PositiveSmallIntegerField(help_text="core.rollups.periods.Width")
    period = models.BigIntegerField(help_text="Its number among the periods of this width.")
    key = models.TextField(help_text="Words as a JSON array: what the calls have in common.")
    figures = models.TextField(help_text="JSON of core.rollups.figures.")
    # The distributions among them, which are most of the bytes: who wants counts reads no others.
    # In rows of before release 2 they are in `figures`, and these are null.
    prompt_tokens = models.TextField(null=True)
    fullness = models.TextField(null=True)
    latency = models.TextField(null=True)
    ttft = models.TextField(null=True)
    estimate = models.TextField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "marginal", "width", "period", "key"], name="rollup_place"
            ),
            one_of("rollup", "marginal", [marginal.value for marginal in Marginal]),
        ]

    def __str__(self) -> str:
        return f"{self.marginal} {self.key}"


class UncountedCalls(models.Model):
    """What one transaction did to calls, until it is added to the rollups.

    Added only, and by every writer its own row: nobody waits for anybody.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    calls = models.PositiveIntegerField(help_text="How many it tells of.")
    changes = models.TextField(help_text="JSON of core.rollups.facts, before and after.")
    at = models.DateTimeField()
    # Conversations that came to stand at a level, or left one: JSON of a count for each severity.
    levels = models.TextField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "id"], name="uncounted_by_project")]

    def __str__(self) -> str:
        return f"{self.calls} calls"


class RollupState(models.Model):
    """What is to be known of a project's rollups; a project without a row has them all."""

    project = models.OneToOneField(
        Project, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    is_complete = models.BooleanField(
        default=True, help_text="No: calls from before there were rollups are yet to be counted."
    )
    # Retention deleted calls of before this quarter-hour: only rollups know of them.
    kept_from = models.BigIntegerField(null=True)
    # A rebuilding that broke off goes on before this quarter-hour.
    rebuilt_down_to = models.BigIntegerField(null=True)
    # The newest change of calls that is in the rollups: its number in UncountedCalls.
    folded_to = models.BigIntegerField(null=True)
    version = models.PositiveSmallIntegerField(
        default=VERSION, help_text="Which marginals are counted: core.rollups.figures.VERSION."
    )
    # How many conversations stand at each level, as in UncountedCalls; null: to be counted.
    levels = models.TextField(null=True)

    def __str__(self) -> str:
        return f"rollups of {self.project_id}"

    @classmethod
    def unfinished(cls) -> models.QuerySet[RollupState]:
        """Projects with calls or fits that are not counted for every marginal yet."""
        return cls.objects.filter(models.Q(is_complete=False) | models.Q(version__lt=VERSION))
