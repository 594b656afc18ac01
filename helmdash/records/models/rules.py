"""Rule sets: what the numbers in `rules` of calls, guidance and plans stand for (core.rules)."""

from __future__ import annotations

from typing import Any

from django.db import models


class RuleSet(models.Model):
    """Versions of rules that decided together. A handful of rows; never changed, never deleted."""

    number = models.IntegerField(primary_key=True, help_text="Hash of the versions.")
    versions = models.JSONField(help_text="Version of each rule, by subject.")

    def __str__(self) -> str:
        return ", ".join(map(str, self.versions.values()))


def rules_field() -> models.ForeignKey[Any, Any]:
    """Which rules decided the row; null for rows from before rules were stored.

    No constraint and no index: writing a call must not look up a row that is always there, and
    nobody searches by it.
    """
    return models.ForeignKey(
        RuleSet,
        null=True,
        editable=False,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
