"""Trials of suggested budgets, and the calls that were ruled in them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.core.budgets.model_names import KEY_CHARS
from helmdash.core.budgets.trials import Arm
from helmdash.core.evidence.trialling import TrialState
from helmdash.records.fields import one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.learned.suggestions import Suggestion


class Trial(models.Model):
    """A suggestion that rules a share of a model's conversations for a while."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    suggestion = models.ForeignKey(Suggestion, on_delete=models.CASCADE, related_name="trials")
    model_key = models.CharField(max_length=KEY_CHARS)
    changes = models.JSONField(help_text="Columns of the budget, and what is tried for them.")
    share = models.FloatField(help_text="Of the conversations, of one.")
    most_conversations = models.PositiveIntegerField(
        null=True, help_text="Ends it, in both arms together."
    )
    until = models.DateTimeField(null=True, help_text="Ends it.")
    state = models.CharField(max_length=10, default=TrialState.RUNNING.value)
    method = models.CharField(max_length=20, help_text="The sequential test, with its version.")
    started_at = models.DateTimeField()
    started_by = word_field(150)
    ended_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True, help_text="When the calls were last counted.")
    # By arm, core.evidence.trialling.ArmFigures and sums of tokens; null: not looked at yet.
    result = models.JSONField(null=True)

    class Meta:
        constraints = [
            one_of("trial", "state", [each.value for each in TrialState]),
            models.UniqueConstraint(
                fields=["project", "model_key"],
                condition=Q(state=TrialState.RUNNING.value),
                name="trial_one_of_a_model",
            ),
            models.CheckConstraint(
                condition=Q(state=TrialState.RUNNING.value) | Q(ended_at__isnull=False),
                name="trial_ended_at",
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk} of {self.model_key}"


class TrialCall(models.Model):
    """A call that was ruled in a trial, and in which arm. Written with the call."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    # No constraint of the database's: a call that waited in a spool is stored, trial or no trial.
    trial = models.ForeignKey(
        Trial, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    arm = models.CharField(max_length=10)
    unit = models.CharField(max_length=16, help_text="Stands for its conversation.")
    # A number alone: calls go by whole months, and nothing looks back from them.
    call_number = models.BigIntegerField(primary_key=True)
    started_at = models.DateTimeField(help_text="The call's: it finds the month.")

    class Meta:
        constraints = [one_of("trial_call", "arm", [each.value for each in Arm])]
        indexes = [
            models.Index(fields=["trial", "arm", "started_at"], name="trial_call_by_arm"),
        ]

    def __str__(self) -> str:
        return f"call {self.call_number} in trial {self.trial_id}"
