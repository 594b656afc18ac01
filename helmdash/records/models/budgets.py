"""Budgets: what one model, or one prefix of model ids, can safely take and give."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from simple_history.models import HistoricalRecords

from helmdash.core.budgets import budgets as core
from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.learned_windows import WindowBy
from helmdash.records.fields import one_of
from helmdash.records.models.access import Project

_GLOBAL_KEY_TAKEN = "A global budget with this key exists already."
_PROJECT_KEY_TAKEN = "This project has a budget with this key already."

# What the history says of rows as HelmDash ships them; any other words are an operator's.
SHIPPED_REASON = "shipped with HelmDash"
# How it begins what it says of an edit that takes back others.
REVERTED_REASON = "reverted"

TIERS = [
    ("A", "A: reliable structured output on large catalogs"),
    ("B", "B: reliable up to about 25 KB of catalog"),
    ("C", "C: weak or free; about 10 KB"),
]
VARIANTS = [
    ("", "By tier: A and B all steps, C the next step only"),
    ("full_steps", "full_steps: all steps at once"),
    ("single_pick", "single_pick: the next step only"),
]


class Budget(models.Model):
    """One row for an exact model id or a prefix of ids; the empty key is the fallback."""

    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="budgets",
        help_text="Empty: for every project. A project's row beats the global row of the same key.",
    )
    key = models.CharField(
        max_length=255,
        blank=True,
        help_text="Exact model id or prefix, with its provider: openai/gpt-4o. "
        "The longest key that fits a model wins. Empty: the fallback for unknown models.",
    )
    input_tokens = models.PositiveBigIntegerField(
        validators=[MinValueValidator(1)],
        help_text="Tokens. Safe ceiling of a whole prompt; not the advertised window.",
    )
    output_tokens = models.PositiveBigIntegerField(
        validators=[MinValueValidator(1)],
        help_text="Tokens. Recommended output limit for structured answers.",
    )
    max_catalog_bytes = models.PositiveBigIntegerField(
        default=0,
        help_text="Bytes of compact JSON. Largest catalog shown to the model; 0 = no compaction.",
    )
    tier = models.CharField(
        max_length=1,
        choices=TIERS,
        help_text="How far structured output can be trusted under load; not the model's size.",
    )
    allows_llm_filter = models.BooleanField(
        default=False, help_text="A second model call may narrow an ambiguous catalog."
    )
    filter_model = models.CharField(
        max_length=255, blank=True, default="", help_text="Model of that call. Empty: the same one."
    )
    fallback_model = models.CharField(
        max_length=255,
        blank=True,
        default="",
        help_text="Model that makes a plan when this one times out or cannot be reached. "
        "Empty: none.",
    )
    is_hybrid_reasoning = models.BooleanField(
        default=False, help_text="Emits thinking before its answer; needs more output and time."
    )
    wants_strict_json = models.BooleanField(
        default=False, help_text="Ask the provider for its JSON mode (never in tier C)."
    )
    supports_prefix_cache = models.BooleanField(
        default=False, help_text="Put the catalog into the cacheable system prompt."
    )
    cached_input_cost_usd_per_mtok = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0)],
        help_text="USD per million cached input tokens. 0 = unknown.",
    )
    input_cost_usd_per_mtok = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0)],
        help_text="USD per million input tokens. Empty = unknown.",
    )
    cache_write_cost_usd_per_mtok = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0)],
        help_text="USD per million input tokens written to a cache. Empty = as other input.",
    )
    output_cost_usd_per_mtok = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0)],
        help_text="USD per million output tokens. Empty = unknown.",
    )
    prompt_variant = models.CharField(
        max_length=12, blank=True, default="", choices=VARIANTS, help_text="Overrides the tier's."
    )
    context_length = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens. Advertised context window. Empty = unknown.",
    )
    input_length = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens. Advertised longest input, where it is less than the window.",
    )
    optimal_max_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens. A prompt above this is yellow. Empty = 100,000, "
        "or 70 % of a limit below 128,000.",
    )
    critical_max_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens. A prompt above this is red. Empty = 90 % of the limit.",
    )
    caution_cadence = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Generations between two reminders while yellow. Empty = 10.",
    )
    chars_per_token = models.FloatField(
        default=4.0,
        validators=[MinValueValidator(0.1), MaxValueValidator(100.0)],
        help_text="Estimator: UTF-8 bytes of one token.",
    )
    safety_multiplier = models.FloatField(
        default=1.2,
        validators=[MinValueValidator(1.0), MaxValueValidator(10.0)],
        help_text="Estimator: factor on top, since the estimate is rough.",
    )
    reserve_tokens = models.PositiveBigIntegerField(
        default=2000, help_text="Tokens kept free for the answer when chunks are assembled."
    )
    evidence = models.TextField(
        blank=True, default="", help_text="Why these numbers, and where they come from."
    )
    enabled = models.BooleanField(
        default=True, help_text="A disabled row governs nothing. The fallback cannot be disabled."
    )
    uses_published_list = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Of the fallback alone: windows and prices that no row knows are those that "
        "vendors publish, by the list that HelmDash ships.",
    )
    # Told once: whether later edits spoke of the window, the history tells
    # (queries.budgets.budget_origins). A release before this column stores rows without it.
    window_copied_from = models.CharField(
        max_length=8,
        choices=[(each.value, each.value) for each in WindowBy if each is not WindowBy.OPERATOR],
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Whose window the row was made with, so that another figure could be changed: "
        "shipped or fallback. Empty: its own.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    # The newest history id is also the revision that tells every process to read the table again.
    history = HistoricalRecords()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("key"),
                condition=Q(project__isnull=True),
                name="budget_one_global_row_per_key",
                violation_error_message=_GLOBAL_KEY_TAKEN,
            ),
            models.UniqueConstraint(
                "project",
                Lower("key"),
                condition=Q(project__isnull=False),
                name="budget_one_row_per_project_and_key",
                violation_error_message=_PROJECT_KEY_TAKEN,
            ),
            one_of("budget", "tier", [tier.value for tier in core.Tier]),
            one_of("budget", "prompt_variant", ["", *(v.value for v in core.PromptVariant)]),
            models.CheckConstraint(
                condition=~Q(key="", enabled=False),
                name="budget_fallback_stays_enabled",
                violation_error_message="The fallback cannot be disabled: it governs every "
                "model without a row of its own.",
            ),
            models.CheckConstraint(
                condition=Q(optimal_max_tokens__isnull=True)
                | Q(critical_max_tokens__isnull=True)
                | Q(optimal_max_tokens__lt=F("critical_max_tokens")),
                name="budget_optimal_below_critical",
                violation_error_message="optimal_max_tokens must be below critical_max_tokens.",
            ),
        ]

    def __str__(self) -> str:
        return self.key or "(fallback)"

    def to_core(self) -> core.BudgetSpec:
        """The same row as a value that knows nothing of the database; whose word its window is, the
        history tells, and queries.budgets with it."""
        stored = {each.name: each.read(getattr(self, each.name)) for each in core.STORED_FIELDS}
        project = str(self.project_id) if self.project_id else None
        return core.BudgetSpec(**stored, budget_id=self.pk, project=project)

    def clean(self) -> None:
        """Raises ValidationError with sentences for the admin and the API; the rules are those of
        core.budgets.budget_rules."""
        self.key = self.key.strip()
        # The field errors are said already, and Django calls this in spite of them.
        if any(value is None for value in (self.input_tokens, self.output_tokens)):
            return
        if self.tier not in dict(TIERS) or self.prompt_variant not in dict(VARIANTS):
            return
        problems: dict[str, list[str]] = {}
        for field, message in budget_problems(self.to_core()):
            problems.setdefault(field, []).append(message)
        if self._is_key_taken():
            taken = _GLOBAL_KEY_TAKEN if self.project_id is None else _PROJECT_KEY_TAKEN
            problems.setdefault("key", []).append(taken)
        if problems:
            raise ValidationError(problems)

    def _is_key_taken(self) -> bool:
        """Whether another row of the scope has this key in other letters that no database compares
        as the lookup does: SQLite's LOWER knows ASCII only. The constraints see to all others."""
        if self.key.isascii():
            return False
        scope = Q(project__isnull=True) if self.project_id is None else Q(project=self.project_id)
        keys = Budget.objects.filter(scope).exclude(pk=self.pk).values_list("key", flat=True)
        return self.key.lower() in {key.lower() for key in keys}

    def full_clean(self, *args: object, **kwargs: object) -> None:
        # Field checks first: to_core() needs a known tier and variant.
        super().full_clean(*args, **kwargs)  # type: ignore[arg-type]


class BudgetAlias(models.Model):
    """Another spelling of model ids: what starts with `prefix` is looked up as `target` + rest."""

    prefix = models.CharField(
        max_length=255,
        help_text="Provider spelling, such as gemini/ . Applies only where no budget matches.",
    )
    target = models.CharField(max_length=255, help_text="What it stands for, such as google/ .")
    evidence = models.TextField(blank=True, default="", help_text="Why the two are the same model.")
    updated_at = models.DateTimeField(auto_now=True)

    history = HistoricalRecords()

    class Meta:
        verbose_name_plural = "budget aliases"
        constraints = [
            models.UniqueConstraint(
                Lower("prefix"),
                name="budget_alias_one_per_prefix",
                violation_error_message="An alias with this prefix exists already.",
            ),
            models.CheckConstraint(
                condition=~Q(prefix="") & ~Q(target=""), name="budget_alias_not_empty"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix} → {self.target}"

    def to_core(self) -> core.Alias:
        return core.Alias(prefix=self.prefix, target=self.target, evidence=self.evidence)
