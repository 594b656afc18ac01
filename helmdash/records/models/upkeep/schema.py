"""Which release of HelmDash's tables a database holds (records.schema)."""

from __future__ import annotations

from django.db import models


class SchemaMark(models.Model):
    """One row for each release of the tables that this database has been brought to."""

    release = models.PositiveIntegerField(unique=True)
    # The oldest code that works on it: the release before, unless a change was not additive.
    oldest_code = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"release {self.release}"
