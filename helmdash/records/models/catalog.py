"""Catalogs as they were imported: a revision is never changed, a new one takes its place."""

from __future__ import annotations

from django.db import models

from helmdash.records.models.access import Project


class CatalogRevision(models.Model):
    """One imported catalog under a name; the highest number of a name is in force."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="catalogs")
    name = models.CharField(max_length=120)
    number = models.PositiveIntegerField(help_text="1 for the first catalog of this name.")
    # Text, not jsonb: PostgreSQL would reorder the keys, and a fit counts the bytes as given.
    body = models.TextField(help_text="Packs and pipelines as compact JSON, in the order given.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the compact JSON.")
    bytes = models.PositiveIntegerField(help_text="UTF-8 length of the compact JSON.")
    packs = models.PositiveIntegerField()
    pipelines = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name", "number"], name="catalog_revision_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} r{self.number}"
