"""The months of calls that are about to come (records.statements.partitions)."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from helmdash.operations.database import statistics
from helmdash.operations.database.transactions import write
from helmdash.records.statements import partitions


def make_ahead(*, now: datetime) -> None:
    """Make the partitions of this month and the next ones, so that no report has to wait for it.

    And tell PostgreSQL how all of them are filled together, as far as that is soon done. Does
    nothing on SQLite.
    """
    if connection.vendor != "postgresql":
        return
    write(lambda: partitions.provide(partitions.months_ahead(now)))
    statistics.refresh(unseen=statistics.is_dear())
