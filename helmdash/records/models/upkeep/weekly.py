"""Who gets the weekly report of a project by mail."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import name_field
from helmdash.records.models.access import Project


class WeeklySubscription(models.Model):
    """One person, one project. The address is the account's own; deleting it ends the mails."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        "auth.User", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    since = models.DateTimeField()
    sent_until = models.DateTimeField(null=True, help_text="End of the newest week that was sent.")
    problem = name_field(200, "Why the newest one could not be sent.")

    class Meta:
        constraints = [
            # The person first: deleting an account looks here for what refers to it.
            models.UniqueConstraint(fields=["user", "project"], name="weekly_subscription_once")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.project_id}"
