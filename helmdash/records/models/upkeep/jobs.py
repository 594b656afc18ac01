"""Work that any server process may do, and only one at a time: who does it, and how it went."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import one_of

OUTCOMES = ("", "done", "interrupted", "cancelled", "failed")


class Job(models.Model):
    """One row for each kind of work. All times are the database's own: clocks of hosts differ."""

    name = models.CharField(max_length=40, primary_key=True)
    turns = models.PositiveBigIntegerField(
        default=0, help_text="How often it was taken; who took it holds it by this number."
    )
    holder = models.CharField(
        max_length=64, blank=True, default="", help_text="The process that took it last."
    )
    until = models.DateTimeField(
        null=True, help_text="Until when the holder has it, unless it renews. Null: it is free."
    )
    due_at = models.DateTimeField(null=True, help_text="Null: it is done when there is something.")
    started_at = models.DateTimeField(null=True, help_text="When it was taken last.")
    ended_at = models.DateTimeField(null=True, help_text="When a holder last said how it went.")
    outcome = models.CharField(max_length=12, blank=True, default="")
    told = models.CharField(max_length=200, blank=True, default="", help_text="What was done.")
    failures = models.PositiveIntegerField(default=0, help_text="In a row; 0 after a success.")
    cursor = models.CharField(max_length=200, blank=True, default="", help_text="Where it goes on.")
    step = models.CharField(
        max_length=200, blank=True, db_default="", help_text="What the turn under way is at."
    )
    steps_done = models.PositiveBigIntegerField(null=True)
    steps_all = models.PositiveBigIntegerField(null=True, help_text="Null: nobody knows.")
    cancel_by = models.CharField(
        max_length=150, blank=True, db_default="", help_text="Who asked the turn under way to end."
    )

    class Meta:
        constraints = [one_of("job", "outcome", OUTCOMES)]

    def __str__(self) -> str:
        return self.name
