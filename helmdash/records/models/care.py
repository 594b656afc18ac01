"""Care of a conversation: what was told to the agent, its reminders, and texts that wait.

Where remediation itself stands is kept with the round (`Round.care`).
"""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import count_field, one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.conversations import Conversation
from helmdash.records.models.rules import rules_field

CARE_ACTIONS = ["guide", "record_prompt", "clear"]
STRENGTHS = ["", "soft", "hard", "critical"]
REMINDER_KINDS = ["note", "re_entry"]


class Guidance(models.Model):
    """What remediation did before one generation. One row for each generation it did something."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="guidance", db_index=False
    )
    generation = models.PositiveBigIntegerField(help_text="The one that was about to start.")
    round_number = models.PositiveIntegerField(help_text="The round it was given in.")
    action = models.CharField(max_length=13)
    strength = word_field(8)
    # Ours or the project's words, never a user's.
    text = models.TextField(blank=True, default="")
    remaining = models.PositiveIntegerField(null=True, help_text="Generations until the clear.")
    reason = word_field(200)
    # After how many messages of the client's history a recorded prompt stands (gateway).
    position = count_field()
    at = models.DateTimeField()
    followed_at = models.DateTimeField(null=True, help_text="When a reminder was written after it.")
    rules = rules_field()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                # The conversation first: deleting one looks here for what refers to it.
                fields=["conversation", "generation", "project"],
                name="guidance_generation",
            ),
            one_of("guidance", "action", CARE_ACTIONS),
            one_of("guidance", "strength", STRENGTHS),
        ]

    def __str__(self) -> str:
        return f"{self.action} before {self.generation}"


class Reminder(models.Model):
    """A note that survives a fresh start; together they are the re-entry package."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="reminders", db_index=False
    )
    name = models.CharField(max_length=32, help_text="The id that the API shows.")
    position = models.PositiveIntegerField(help_text="From 1, without gaps.")
    kind = models.CharField(max_length=8, default="note")
    content = models.TextField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "name", "project"], name="reminder_name"
            ),
            one_of("reminder", "kind", REMINDER_KINDS),
        ]

    def __str__(self) -> str:
        return self.name


class PendingPrompt(models.Model):
    """A user's text that no reply has answered yet: what a clear carries over. Sealed.

    By the conversation's name, for the first text of all comes before its first call.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation_name = models.CharField(max_length=255)
    generation = models.PositiveBigIntegerField(help_text="The one it was meant for.")
    # The same in our own count, for a caller may number its generations in another way.
    answered_from = models.PositiveBigIntegerField(help_text="The first call that may answer it.")
    text = models.TextField(help_text="A list of texts: two workers may bring one each.")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "conversation_name", "generation"], name="pending_prompt"
            )
        ]
        indexes = [models.Index(fields=["project", "at"], name="pending_prompt_by_time")]

    def __str__(self) -> str:
        return f"prompt for {self.generation}"
