"""Windows that upstreams told or showed: what is known of a model besides its budget."""

from __future__ import annotations

from django.db import models

from helmdash.core.budgets.learned_windows import WindowSource
from helmdash.core.budgets.model_names import KEY_CHARS
from helmdash.records.fields import one_of, word_field
from helmdash.records.models.access import Project


class LearnedWindow(models.Model):
    """The newest that one source told of one model: a row for each pair, a few hundred in all."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    model_key = models.CharField(max_length=KEY_CHARS)
    source = models.CharField(max_length=8)
    tokens = models.PositiveBigIntegerField()
    seen_at = models.DateTimeField()
    call_name = word_field(128)  # the call that told it; it may be deleted before this row

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "model_key", "source"], name="learned_window_source"
            ),
            one_of("learnedwindow", "source", [source.value for source in WindowSource]),
        ]
        indexes = [
            # What tells every process that something was learned.
            models.Index(fields=["seen_at"], name="learned_window_by_time")
        ]

    def __str__(self) -> str:
        return f"{self.model_key}: {self.tokens} ({self.source})"
