"""What telemetry has told of calls, and left for a later export."""

from __future__ import annotations

from django.db import models

from helmdash.records.models.access import Project


class AwaitedSpan(models.Model):
    """A call that was told without its session, and the span around it that may name that. Gone
    when the span has come, or after a day."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    around = models.CharField(max_length=49, help_text="Trace and span that it lies in.")
    call_name = models.CharField(max_length=128)
    agent = models.CharField(max_length=200, blank=True, default="")
    also_known = models.JSONField(default=list, help_text="Further names of the call.")
    told_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "around", "call_name"], name="awaited_span_once"
            )
        ]

    def __str__(self) -> str:
        return self.call_name
