"""The recorder's ledger: what each server process has taken in and what became of it."""

from __future__ import annotations

from django.db import models


def _count(help_text: str) -> models.PositiveBigIntegerField:  # type: ignore[type-arg]
    return models.PositiveBigIntegerField(default=0, help_text=help_text)


def _later_count(help_text: str) -> models.PositiveBigIntegerField:  # type: ignore[type-arg]
    # The database's own default: code of the release before writes rows without it.
    return models.PositiveBigIntegerField(default=0, db_default=0, help_text=help_text)


class RecorderLedger(models.Model):
    """One row for each process that recorded. Its counts only grow; all rows added up are true."""

    name = models.CharField(max_length=64, unique=True, help_text="Host, process id and start.")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(help_text="When the process last wrote here.")
    stopped_at = models.DateTimeField(null=True, help_text="Null: running, or ended by force.")
    accepted = _count("Calls taken in, to be stored.")
    stored = _count("Calls stored.")
    duplicate = _count("Calls that were stored already.")
    rejected = _count("Calls that could not be stored because of what they hold.")
    spooled = _count("Calls that waited in the spool file because the database was away.")
    dropped = _count("Calls lost because the spool was full.")
    in_flight_lost = _count("Calls that were under way when this process was killed.")
    bare = _later_count("Of the stored calls, those without their texts: no database took these.")
    damaged_lines = _later_count("Lines of the spool that could not be read and were put aside.")
    waiting = models.PositiveBigIntegerField(default=0, help_text="Calls not stored yet.")
    spool_bytes = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name
