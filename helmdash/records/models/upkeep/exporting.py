"""Where recorded calls are exported to, and which of them still wait for it."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from helmdash.records.models.access import Project

NAME_CHARS = 64


class Exporter(models.Model):
    """A receiver of OTLP traces. Its headers may hold a key: sealed, never shown."""

    name = models.CharField(
        max_length=NAME_CHARS,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9][a-z0-9._-]*$",
                "Use lower-case letters, digits, dots, dashes and underscores.",
            )
        ],
        help_text="What it is called in metrics and lists, such as `langfuse`.",
    )
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Whose calls it gets. Empty: every project's.",
    )
    url = models.CharField(
        max_length=500,
        help_text="Its OTLP/HTTP address; /v1/traces is put behind it where it is missing.",
    )
    headers_encrypted = models.TextField(blank=True, default="", editable=False)
    allow_private = models.BooleanField(
        default=False,
        help_text="Whether its address may be on this machine or in a private network.",
    )
    enabled = models.BooleanField(default=True)
    is_of_environment = models.BooleanField(
        default=False,
        editable=False,
        help_text="Made of HELMDASH_OTLP_EXPORT_URL, and gone with it.",
    )
    exported = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="Calls that it has taken."
    )
    refused = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="Calls that it would not take, or that were too old."
    )
    exported_at = models.DateTimeField(
        null=True, editable=False, help_text="When it last took some."
    )
    failures = models.PositiveIntegerField(
        default=0, editable=False, help_text="Tries that failed in a row; 0 after a success."
    )
    next_try_at = models.DateTimeField(null=True, editable=False)
    latest_problem = models.CharField(max_length=300, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name


class PendingExport(models.Model):
    """Calls of one transaction that one exporter has still to take.

    Written with the calls and deleted when they were taken: what was answered with 2xx is exported,
    whatever happens in between, and nobody has to know in which order transactions ended.
    """

    exporter = models.ForeignKey(
        Exporter, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    count = models.PositiveIntegerField(help_text="How many calls.")
    calls = models.TextField(help_text="JSON: the key of each, [id, started_at].")
    at = models.DateTimeField(help_text="When they were recorded.")

    class Meta:
        indexes = [models.Index(fields=["exporter", "id"], name="pending_export_by_exporter")]

    def __str__(self) -> str:
        return f"{self.count} calls"
