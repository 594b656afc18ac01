"""Plan history: what was asked, what the model was shown, each try, and the steps it gave.

A plan's texts (intent, arguments, rationales) are kept as far as the project keeps payloads. What
is always kept cannot be read back: a keyed hash of the intent, and its words as keyed hashes, so
that plans for like intents are found without their texts (helmdash.records.access.keyed_hash).
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.failures import FailureCause
from helmdash.records.fields import count_field, name_field, one_of, word_field
from helmdash.records.models.access import Project
from helmdash.records.models.rules import rules_field

PLAN_KINDS = ["plan", "route"]
# running: not over yet. ok: every step names an entry. gap: some step has no entry for it.
# partial: the reply was cut off, its complete steps are kept. failed: see the cause.
PLAN_OUTCOMES = ["running", "ok", "gap", "partial", "failed"]


class PlanRecord(models.Model):
    """One plan or route: the question, the answer, and what it took."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=64, help_text="The plan_id of the answer.")
    kind = models.CharField(max_length=5)
    # The text only where the project keeps texts; the two below always.
    intent = models.TextField(blank=True, default="")
    intent_sha = models.CharField(max_length=16)
    sketch = models.JSONField(null=True, help_text="The intent's clauses as hidden words.")
    # The whole text, pasted parts and all, as a keyed hash; and the size of the context with it.
    text_sha = word_field(16)
    context_bytes = count_field()
    model = models.CharField(max_length=255)
    caller = word_field(128)
    conversation = name_field(255, "Name of the conversation it was asked for; null: not told.")
    prompt_variant = word_field(32)
    complexity = word_field(16)
    outcome = models.CharField(max_length=8, default="running")
    cause = word_field(24)
    cause_rule = word_field(48)
    cause_advice = word_field(20)
    cause_detail = word_field(400)
    step_count = models.PositiveIntegerField(default=0)
    gap_count = models.PositiveIntegerField(default=0)
    more_steps_likely = models.BooleanField(null=True)
    continues = word_field(64)  # the plan whose work this one goes on with (single_pick)
    fit_name = word_field(64)  # the Fit that made the catalog of the last try
    before_bytes = count_field()
    after_bytes = count_field()
    catalog_name = word_field(120)
    progress = models.PositiveSmallIntegerField(default=0, help_text="Percent.")
    result = models.JSONField(null=True, help_text="The answer, as far as texts are kept.")
    # Of a plan made in the background where texts are not kept in full: the whole answer, sealed,
    # and how long it waits to be fetched.
    waiting = models.TextField(blank=True, default="")
    result_until = models.DateTimeField(null=True)
    followed = models.BooleanField(null=True, help_text="Whether its steps were carried out.")
    latency_ms = count_field()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    rules = rules_field()

    class Meta:
        verbose_name = "plan"
        verbose_name_plural = "plans"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"],
                # Equality and prefix search ("starts with") by the same index.
                opclasses=["int8_ops", "varchar_pattern_ops"],
                name="plan_name",
            ),
            one_of("plan", "kind", PLAN_KINDS),
            one_of("plan", "outcome", PLAN_OUTCOMES),
            one_of("plan", "prompt_variant", ["", *(each.value for each in PromptVariant)]),
            one_of("plan", "cause", ["", *(cause.value for cause in FailureCause)]),
        ]
        indexes = [
            # The list, newest first.
            models.Index(fields=["project", "started_at", "id"], name="plan_by_time"),
            # Those that no rollup has yet: they run, or their server is gone.
            models.Index(
                fields=["project", "started_at"],
                condition=Q(outcome="running"),
                name="plan_running",
            ),
            # A caller's own plans (my-plans), and its learned defaults.
            models.Index(fields=["project", "caller", "started_at", "id"], name="plan_by_caller"),
            models.Index(fields=["project", "model", "started_at", "id"], name="plan_by_model"),
            # The steps of a chain that a single_pick agent goes along.
            models.Index(
                fields=["project", "intent_sha", "started_at", "id"], name="plan_by_intent"
            ),
            # What goes with a conversation that is erased.
            models.Index(
                fields=["project", "conversation"],
                condition=Q(conversation__isnull=False),
                name="plan_by_conversation",
            ),
            # Answers that have waited long enough.
            models.Index(
                fields=["result_until"],
                condition=Q(result_until__isnull=False),
                name="plan_answer_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PlanStep(models.Model):
    """One tool call of a plan, or the recommendation of a route; a gap names no entry."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    plan = models.ForeignKey(
        PlanRecord, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    position = models.PositiveIntegerField(help_text="From 1.")
    # The catalog's own id of the pack or pipeline; empty for a gap.
    entry = word_field(255)
    is_pipeline = models.BooleanField(default=False)
    asked = word_field(255)  # what the model wrote, where that is something else
    gap = word_field(200)  # why no entry was found
    suggestions = models.JSONField(null=True, help_text="The nearest entries, for a gap.")
    args = models.JSONField(null=True, help_text="Kept where the project keeps texts.")
    args_sha = word_field(16)
    learned = models.JSONField(null=True, help_text="Preferences among the arguments.")
    rationale = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "position", "project"], name="plan_step_place")
        ]
        indexes = [
            # Plans that use a tool.
            models.Index(fields=["project", "entry", "plan"], name="plan_step_by_entry"),
        ]

    def __str__(self) -> str:
        return f"step {self.position}"


class PlanAttempt(models.Model):
    """One call made for a plan: the filter pass, the plan itself, and each recovery."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    plan = models.ForeignKey(
        PlanRecord, on_delete=models.CASCADE, related_name="attempts", db_index=False
    )
    number = models.PositiveIntegerField(help_text="From 1, filter passes included.")
    purpose = models.CharField(max_length=32)
    call_name = models.CharField(max_length=128)
    model = models.CharField(max_length=255)
    prompt_variant = word_field(32)
    response_format = word_field(32)
    max_tokens = count_field()
    reason = word_field(300)  # why this attempt was made, as a sentence
    cause = word_field(24)
    finish_reason = word_field(16)
    latency_ms = count_field()
    prompt_bytes = count_field("UTF-8 bytes of system and user message.")
    system_sha = word_field(16)  # two calls with the same one share a cacheable prefix
    catalog_digest = word_field(64)  # what the model was shown: PlanCatalog
    catalog_bytes = count_field()
    fit_name = word_field(64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "number", "project"], name="plan_attempt_place")
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"


class PlanCatalog(models.Model):
    """A catalog as a model was shown it, stored once however many plans it was shown for."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the body.")
    body = models.TextField(help_text="Compact JSON, the bytes that were sent.")
    # To the day: what retention goes by.
    latest_used_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "digest"], name="plan_catalog_digest")
        ]
        indexes = [
            models.Index(fields=["project", "latest_used_at"], name="plan_catalog_by_time"),
        ]

    def __str__(self) -> str:
        return self.digest
