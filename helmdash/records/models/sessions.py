"""Whose a session of the pages is and where it is used from; whom a provider vouches for; how
pages look to somebody."""

from __future__ import annotations

from django.db import models

from helmdash.records.fields import name_field, one_of


class SignedIn(models.Model):
    """One session of Django's: who has it, on which device, when it was used. Ended with it."""

    user = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="+")
    # No foreign key: Django deletes its rows without asking ours.
    session_key = models.CharField(max_length=40, unique=True)
    device = models.CharField(max_length=40)
    address = name_field(45, "Where it was used from at last.")
    since = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.device


class OidcIdentity(models.Model):
    """Whom an identity provider knows an account as; nothing else leads from there to here."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="oidc_identity_once")
        ]

    def __str__(self) -> str:
        return self.subject


class Look(models.Model):
    """How pages look to somebody, in every browser. Empty: as the browser has it."""

    user = models.OneToOneField(
        "auth.User", primary_key=True, on_delete=models.CASCADE, related_name="look"
    )
    theme = models.CharField(max_length=5, blank=True, default="")
    zone = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = [one_of("look", "theme", ["", "light", "dark"])]

    def __str__(self) -> str:
        return f"look of {self.user_id}"
