"""What the doors remember: who tried to sign in and was wrong, and answers kept for a repeat."""

from __future__ import annotations

from django.db import models

from helmdash.core.access.wrong_addresses import KnockReason
from helmdash.records.models.access import ApiKey


class SignInThrottle(models.Model):
    """Wrong tries of one account or one address. Few rows: `retain` and every sign-in clean up."""

    # A keyed hash: an address is nobody's business after a wrong password.
    subject = models.CharField(max_length=64, unique=True)
    failures = models.PositiveIntegerField()
    blocked_until = models.DateTimeField(
        # Rows whose time is long over are deleted by it.
        db_index=True,
        help_text="When the next try may be made; in the past: at once.",
    )

    def __str__(self) -> str:
        return f"{self.failures} wrong tries"


class KeptAnswer(models.Model):
    """The first answer to a request with an `Idempotency-Key`, for its repeats.

    Without a status it is under way: whoever made the row is carrying the request out.
    """

    api_key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="+")
    request_sha = models.CharField(max_length=64, help_text="SHA-256 of path and key value.")
    body_sha = models.CharField(max_length=64, help_text="SHA-256 of the body's bytes.")
    status = models.PositiveSmallIntegerField(null=True)
    sealed = models.TextField(
        default="", blank=True, help_text="Headers and body, sealed. Empty: too large to keep."
    )
    claim = models.CharField(max_length=32, help_text="Who carries the request out.")
    expires_at = models.DateTimeField(
        # Rows are deleted by it.
        db_index=True,
        help_text="Until when it is replayed, or until when its maker may take.",
    )

    class Meta:
        constraints = [
            # Of two requests at once, one makes the row.
            models.UniqueConstraint(fields=["api_key", "request_sha"], name="kept_answer_once")
        ]

    def __str__(self) -> str:
        return f"{self.request_sha[:8]} {self.status or 'under way'}"


class Knock(models.Model):
    """Requests that were turned away, by who asked. A few hundred rows at most."""

    # Of all three only what is printable and tells no secret (core.access.wrong_addresses).
    method = models.CharField(max_length=16)
    path = models.CharField(max_length=120)
    client = models.CharField(max_length=64, help_text="From the user agent; empty: it told none.")
    reason = models.CharField(
        max_length=8,
        default=KnockReason.ADDRESS.value,
        db_default=KnockReason.ADDRESS.value,
        help_text="Why: address or key.",
    )
    count = models.PositiveBigIntegerField()
    advice = models.CharField(max_length=400, help_text="What the client was told.")
    first_at = models.DateTimeField()
    latest_at = models.DateTimeField(
        # The list is ordered by it, and the oldest rows are deleted.
        db_index=True
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["method", "path", "client"], name="knock_once")
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
