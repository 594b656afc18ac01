"""Alerts: what is watched, where messages go, what fires, what became of each message, and how far
behind recorder and exporters were."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import NAME_CHARS, RuleKind, Severity
from helmdash.records.fields import name_field, one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.upkeep.exporting import Exporter

DELIVERY_STATES = ["waiting", "sent", "failed"]
_SEVERITIES = [each.value for each in Severity]
KEY_CHARS = 32


class AlertChannel(models.Model):
    """Where messages of a project go. Its address and secret are encrypted: a webhook's address is
    a secret by itself."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=NAME_CHARS)
    kind = models.CharField(max_length=16)
    host = models.CharField(max_length=255, help_text="What of the address may be shown.")
    address_encrypted = models.TextField()
    secret_encrypted = models.TextField(blank=True, default="")
    allow_private = models.BooleanField(
        default=False,
        help_text="Whether its address may be on this machine or in a private network.",
    )
    enabled = models.BooleanField(default=True)
    # Messages go in order: while the oldest cannot be delivered, the others wait behind it.
    failures = models.PositiveIntegerField(default=0, help_text="Attempts in a row that failed.")
    retry_at = models.DateTimeField(null=True, help_text="Null: at once.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    left_at = models.DateTimeField(
        null=True, help_text="When it was switched off, with what it is still to hear."
    )
    gone_at = models.DateTimeField(
        null=True, help_text="When it was deleted, but for what it is still to hear."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="alert_channel_name"),
            one_of("alert_channel", "kind", [kind.value for kind in ChannelKind]),
        ]

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """What is watched, and who is told of it (core.alerts.rules)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    # In the keys of its alerts, so that they are no other installation's.
    uid = models.CharField(max_length=32, unique=True)
    name = models.CharField(max_length=NAME_CHARS)
    kind = models.CharField(max_length=16)
    level = word_field(10)
    threshold = models.PositiveIntegerField(null=True)
    minutes = models.PositiveIntegerField(null=True)
    group_s = models.PositiveIntegerField(help_text="Seconds that changes are gathered.")
    quiet_start = models.TimeField(null=True, help_text="Null: no quiet hours.")
    quiet_end = models.TimeField(null=True)
    zone = word_field(64)
    # Numbers of channels; those of channels that are gone tell nobody.
    channels = models.JSONField(default=list)
    enabled = models.BooleanField(default=False)
    next_at = models.DateTimeField(help_text="When it is looked at next.")
    cursor = models.JSONField(null=True, help_text="How far the last look came.")
    problem = word_field(64)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="alert_rule_name"),
            one_of("alert_rule", "kind", [kind.value for kind in RuleKind]),
        ]
        indexes = [
            # Those to be looked at, of any project.
            models.Index(fields=["next_at"], condition=Q(enabled=True), name="alert_rule_due"),
        ]

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """Where a rule stands with one subject (core.alerts.states)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="+", db_index=False)
    subject = models.CharField(max_length=300)
    severity = models.CharField(max_length=10)
    title = models.CharField(max_length=400)
    detail = word_field(400)
    path = word_field(1000)
    opened_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    episode = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=1)
    told = models.PositiveIntegerField(default=0)
    told_episode = models.PositiveIntegerField(default=0)
    pending_since = models.DateTimeField(null=True, help_text="Of the first change not told yet.")
    message_key = word_field(KEY_CHARS)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = name_field(150)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "subject"], name="alert_subject"),
            one_of("alert", "severity", _SEVERITIES),
        ]
        indexes = [
            # What fires, and the newest first.
            models.Index(fields=["project", "changed_at", "id"], name="alert_by_time"),
            models.Index(
                fields=["rule"], condition=Q(resolved_at__isnull=True), name="alert_firing"
            ),
            models.Index(
                fields=["rule", "pending_since"],
                condition=Q(pending_since__isnull=False),
                name="alert_pending",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class AlertMessage(models.Model):
    """What was said of some changes, to every channel of a rule (core.alerts.messages)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    # Null also where the rule was deleted: what ends its alerts is still to be sent.
    rule = models.ForeignKey(
        AlertRule, null=True, on_delete=models.CASCADE, related_name="+", help_text="Null: a test."
    )
    key = models.CharField(max_length=KEY_CHARS)
    headline = models.CharField(max_length=500)
    body = models.TextField(help_text="JSON of core.alerts.messages.Message.")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "key"], name="alert_message_key")]
        indexes = [models.Index(fields=["created_at"], name="alert_message_by_time")]

    def __str__(self) -> str:
        return self.headline


class AlertDelivery(models.Model):
    """A message on its way to one channel, until it is there or given up."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    channel = models.ForeignKey(
        AlertChannel, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    message = models.ForeignKey(AlertMessage, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=8, default="waiting")
    attempts = models.PositiveIntegerField(default=0)
    http_status = models.PositiveSmallIntegerField(null=True)
    told = word_field(400)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "alert delivery"
        verbose_name_plural = "alert deliveries"
        constraints = [
            models.UniqueConstraint(fields=["channel", "message"], name="alert_delivery_once"),
            one_of("alert_delivery", "state", DELIVERY_STATES),
        ]
        indexes = [
            # The log, newest first.
            models.Index(fields=["project", "id"], name="alert_delivery_by_time"),
            # The queue of each channel.
            models.Index(
                fields=["channel", "id"],
                condition=Q(state="waiting"),
                name="alert_delivery_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.state


class LagSample(models.Model):
    """How far the recorder or an exporter was behind at a moment, and from then on until its next
    row: what a rule on lag would have said last week is told by it. No project's own."""

    exporter = models.ForeignKey(
        Exporter,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="Null: the recorders of all server processes.",
    )
    at = models.DateTimeField()
    waiting = models.PositiveBigIntegerField(help_text="Calls that waited.")
    since = models.DateTimeField(
        null=True,
        help_text="Of an exporter: when the oldest of them was recorded; null: a minute ago at "
        "most, or none waits.",
    )

    class Meta:
        indexes = [models.Index(fields=["exporter", "at"], name="lag_sample_by_time")]

    def __str__(self) -> str:
        return f"{self.waiting} calls at {self.at}"
