"""Upstreams: the endpoints that the gateway may call, and nothing else."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.records.fields import one_of
from helmdash.records.models.access import Project

# A model that thinks for long sends nothing for minutes.
DEFAULT_READ_TIMEOUT_S = 600
MOST_READ_TIMEOUT_S = 3600


class Upstream(models.Model):
    """A configured endpoint. Its key is named (a variable) or kept encrypted, never shown."""

    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Whose calls may use it. Empty: every project's.",
    )
    name = models.CharField(
        max_length=64,
        validators=[
            RegexValidator(
                r"^[a-z0-9][a-z0-9._-]*$",
                "Use lower-case letters, digits, dots, dashes and underscores.",
            )
        ],
        help_text="What stands before the slash in `provider/model`, such as `openrouter`.",
    )
    kind = models.CharField(
        max_length=16,
        choices=[(kind.value, kind.value) for kind in ProviderKind],
        help_text="The API it speaks. Most hosts and local servers speak OpenAI's.",
    )
    formats = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="The formats it speaks, with spaces between; empty: found out.",
    )
    base_url = models.URLField(
        max_length=500,
        help_text="Such as https://api.openai.com/v1 or http://127.0.0.1:11434.",
    )
    key_variable = models.CharField(
        max_length=128,
        blank=True,
        default="",
        help_text="The environment variable that holds its key. Or enter the key itself below.",
    )
    key_encrypted = models.TextField(blank=True, default="", editable=False)
    models_served = models.TextField(
        blank=True,
        default="",
        help_text="Model ids, one a line; `*` stands for anything. Empty: the upstream is asked.",
    )
    allow_private = models.BooleanField(
        default=False,
        help_text="Whether its address may be on this machine or in a private network.",
    )
    read_timeout_s = models.PositiveIntegerField(
        default=DEFAULT_READ_TIMEOUT_S,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_READ_TIMEOUT_S)],
        help_text="Seconds the first byte of a reply, and each one after it, may take.",
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="upstream_name"),
            # SQLite holds two nulls to be different.
            models.UniqueConstraint(
                fields=["name"], condition=Q(project__isnull=True), name="upstream_global_name"
            ),
            one_of("upstream", "kind", [kind.value for kind in ProviderKind]),
        ]

    def __str__(self) -> str:
        return self.name
