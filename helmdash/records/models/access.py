"""Who may do what: projects, and the API keys that act for them."""

from __future__ import annotations

import hashlib
import secrets

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from helmdash.core.access import permissions
from helmdash.records.fields import one_of


class Payload(models.TextChoices):
    """How much of a call's text a project keeps."""

    OFF = "off", "Off: no prompt and no answer is stored"
    REDACTED = "redacted", "Redacted: stored with secrets and addresses masked"
    FULL = "full", "Full: stored as it was sent"


class BudgetMode(models.TextChoices):
    """What the gateway does with a request that is larger than its budget."""

    OBSERVE = "observe", "Observe: send it and record it"
    WARN = "warn", "Warn: send it and say so in a response header"
    ENFORCE = "enforce", "Enforce: refuse it without calling the provider"


class ScopeChoices(models.TextChoices):
    """What an API key may do, for forms; core.access.permissions has what each means."""

    RECORD = permissions.Scope.RECORD.value, "record: report calls"
    READ = permissions.Scope.READ.value, "read: read calls, conversations, catalogs"
    FIT = permissions.Scope.FIT.value, "fit: fit, rank, decode"
    PLAN = permissions.Scope.PLAN.value, "plan: plan and route"
    BUDGETS = permissions.Scope.BUDGETS.value, "budgets: change budgets of the project"
    ADMIN = permissions.Scope.ADMIN.value, "admin: everything"


class RoleChoices(models.TextChoices):
    """What a member of a project may do, for forms; core.access.permissions has what each means."""

    VIEWER = permissions.MemberRole.VIEWER.value, "viewer: reads"
    EDITOR = (
        permissions.MemberRole.EDITOR.value,
        "editor: also care, reminders, plans, and the project's budgets",
    )
    OWNER = (
        permissions.MemberRole.OWNER.value,
        "owner: also keys, members, upstreams, catalogs, settings",
    )


def hash_key(key: str) -> str:
    """What is stored of a key: SHA-256, enough for keys of 190 random bits."""
    return hashlib.sha256(key.encode()).hexdigest()


def key_prefix(key: str) -> str:
    """As much of a key as may be shown to recognize it by: a third of it, 8 characters at most."""
    return key[: min(8, len(key) // 3)]


class Project(models.Model):
    """One tenant's calls, budgets of its own, catalogs and keys."""

    slug = models.SlugField(max_length=64, unique=True, help_text="Short name used in links.")
    name = models.CharField(max_length=120, help_text="Name shown on the pages.")
    is_default = models.BooleanField(
        default=False, help_text="The project new API keys belong to. Exactly one."
    )
    is_demo = models.BooleanField(
        default=False,
        editable=False,
        help_text="Made by `demo load`; never mixed into real figures.",
    )
    payload = models.CharField(
        max_length=10,
        choices=Payload,
        default=Payload.OFF,
        help_text="Whether prompts and answers of recorded calls are stored.",
    )
    retention_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Calls older than this many days are deleted by `retain`. Empty: kept for ever.",
    )
    text_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Texts of calls and plans older than this many days are deleted by `retain`, "
        "their figures stay. Empty: kept as long as the calls.",
    )
    redaction_patterns = models.JSONField(
        null=True,
        blank=True,
        help_text="Patterns of the project's own that are masked, besides the built-in ones.",
    )
    current_catalog = models.ForeignKey(
        "records.CatalogRevision",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The catalog a fit uses when it names none.",
    )
    budget_mode = models.CharField(
        max_length=10,
        choices=BudgetMode,
        default=BudgetMode.OBSERVE,
        help_text="What the gateway does with a request that is larger than its model's budget. "
        "A call may choose otherwise with the header x-helmdash-budget.",
    )
    remediation = models.BooleanField(
        default=False,
        help_text="Whether the gateway itself cares for conversations: guidance near the limit, a "
        "countdown, and a fresh start in the end. A call may choose otherwise with the header "
        "x-helmdash-remediation.",
    )
    # Own words instead of the shipped ones; empty: the shipped ones.
    soft_text = models.TextField(
        blank=True, default="", help_text="Guidance while a conversation may go on briefly."
    )
    hard_text = models.TextField(
        blank=True, default="", help_text="Guidance that wants reminders to be written."
    )
    critical_text = models.TextField(
        blank=True, default="", help_text="The prompt that counts down to a fresh start."
    )
    default_upstream = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Name of the upstream for models that no upstream lists. Empty: none.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="project_one_default"
            ),
            one_of("project", "payload", Payload.values),
            one_of("project", "budget_mode", BudgetMode.values),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a project. Who has none sees nothing of it; superusers need none."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(
        max_length=10,
        choices=RoleChoices,
        default=RoleChoices.VIEWER,
        help_text="What they may do in it.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    history = HistoricalRecords()

    class Meta:
        verbose_name = "member"
        verbose_name_plural = "members"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user"],
                name="membership_one_per_project_and_user",
                violation_error_message="This person is a member of the project already.",
            ),
            one_of("membership", "role", RoleChoices.values),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"


class ApiKey(models.Model):
    """A program's credential: only its hash is kept; the key itself is shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80, help_text="Who uses it; shown as the caller of calls.")
    prefix = models.CharField(
        max_length=16, editable=False, help_text="First characters, to recognize the key by."
    )
    # SHA-256 is enough for 190 random bits; a slow password hash would cost every request.
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(default=list, help_text="What the key may do.")
    created_at = models.DateTimeField(auto_now_add=True)
    latest_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="From then on the key is refused. Empty: it does not expire.",
    )

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"],
                condition=Q(revoked_at__isnull=True),
                name="api_key_one_active_per_project_and_name",
                violation_error_message="An active key has this name. Revoke it first.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def issue(self, secret: str | None = None) -> str:
        """Give an unsaved key its secret, a fresh one where secret is None, and return it.

        Only the hash and the first characters stay here: the caller shows the secret, once.
        """
        key = secret or f"hd_{secrets.token_urlsafe(24)}"
        self.prefix = key_prefix(key)
        self.key_hash = hash_key(key)
        return key
