"""What clients told of conversations that is no call: their compactions, and what they refused."""

from __future__ import annotations

from django.db import models

from helmdash.core.agents.claude_hooks import DETAIL_CHARS, ClientEventKind
from helmdash.records.fields import one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.conversations import Conversation


class ClientEvent(models.Model):
    """One event, as its client told it. Rows are only added; they go with their conversation."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=24)
    key = models.CharField(max_length=160, help_text="The same where one event is told twice.")
    detail = word_field(DETAIL_CHARS)
    at = models.DateTimeField(help_text="When it was told.")

    class Meta:
        constraints = [
            # The conversation first: deleting one looks here for what refers to it.
            models.UniqueConstraint(
                fields=["conversation", "key", "project"], name="client_event_once"
            ),
            one_of("client_event", "kind", [each.value for each in ClientEventKind]),
        ]

    def __str__(self) -> str:
        return self.kind
