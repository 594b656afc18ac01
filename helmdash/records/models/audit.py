"""The audit log: who changed what, when and from where."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import name_field
from helmdash.records.models.access import Project

SUBJECT_CHARS = 255


class AuditEntry(models.Model):
    """One change by somebody, written in the transaction of the change. Rows are only added, and
    deleted when they are old."""

    project = models.ForeignKey(
        Project,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        help_text="Null: it concerns every project, or one that is gone.",
    )
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150)
    way = models.CharField(max_length=10, help_text="How they came: pages, admin, api, command.")
    address = name_field(45, "Of the client.")
    kind = models.CharField(max_length=16, help_text="What was changed: budget, key, member.")
    action = models.CharField(max_length=16)
    subject = models.CharField(max_length=SUBJECT_CHARS, help_text="Which one, by its name.")
    changes = models.JSONField(default=list, help_text="[field, before, after], without secrets.")

    class Meta:
        indexes = [
            models.Index(fields=["project", "id"], name="audit_by_project"),
            # What is old is found by its time.
            models.Index(fields=["at"], name="audit_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} {self.action}"
