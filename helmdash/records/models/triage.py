"""What people said about trouble: kept with who and when, the newest word counts."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import name_field, one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.conversations import Conversation

FAILURE_MARKS = ["resolved", "muted", "open"]
CONVERSATION_WORDS = ["done", "snoozed", "open", "note"]
NOTE_CHARS = 500


class FailureMark(models.Model):
    """Somebody's word on the calls of a model that failed for a cause. Rows are only added."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    cause = models.CharField(max_length=24)
    model_key = models.CharField(max_length=255)
    state = models.CharField(max_length=8)
    by = name_field(150, "Who said it, as histories name them.")
    at = models.DateTimeField()
    until = models.DateTimeField(null=True, help_text="When a mute ends.")

    class Meta:
        constraints = [one_of("failure_mark", "state", FAILURE_MARKS)]
        indexes = [
            # The newest word on some groups.
            models.Index(
                fields=["project", "cause", "model_key", "id"], name="failure_mark_by_group"
            )
        ]

    def __str__(self) -> str:
        return f"{self.cause} {self.state}"


class TriageWord(models.Model):
    """Somebody's word on a conversation. Rows are only added; the conversation's own says what came
    of it (`attention`, `snoozed_until`)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    word = models.CharField(max_length=8)
    text = word_field(NOTE_CHARS)
    by = name_field(150, "Who said it, as histories name them.")
    at = models.DateTimeField()

    class Meta:
        constraints = [one_of("triage", "word", CONVERSATION_WORDS)]
        # The newest words on a conversation; deleting one looks here for what refers to it.
        indexes = [models.Index(fields=["conversation", "id"], name="triage_by_conversation")]

    def __str__(self) -> str:
        return self.word
