"""Budgets: the figures of a row as it is stored, and as they hold for one model.

Source: the table of helmdeck ADR 050 and 051. Rows are data: nothing here knows a model by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Final, assert_never

from helmdash.answers import HIDDEN, Doc, JsonName, Words, answer, member
from helmdash.core.budgets.figures import (
    Label,
    Multiline,
    Range,
    Section,
    Tokens,
    UsdPerMtok,
    fields_of,
)
from helmdash.core.budgets.learned_windows import (
    LimitSource,
    WindowBy,
    WindowClaim,
    WindowReport,
)
from helmdash.core.budgets.lines import LineSource
from helmdash.core.budgets.trials import InTrial
from helmdash.core.text.tokens import Estimator


class Tier(StrEnum):
    """How far a model's structured output can be trusted under load; not its size."""

    A = "A"
    B = "B"
    C = "C"


def has_full_trust(tier: Tier) -> bool:
    """Whether a whole catalog, all steps at once and JSON mode can be asked of it."""
    match tier:
        case Tier.A | Tier.B:
            return True
        case Tier.C:
            return False
        case _:
            assert_never(tier)


class PromptVariant(StrEnum):
    """The planning task as set to a model (helmdeck ADR 053)."""

    FULL_STEPS = "full_steps"
    SINGLE_PICK = "single_pick"


_USD = "USD per million tokens"
# A variant where it is kept as plain text.
VariantText = Annotated[str, Words(tuple(each.value for each in PromptVariant))]


class MatchRule(StrEnum):
    """How a model id found its row."""

    EXACT = "exact"
    PREFIX = "prefix"
    ALIAS = "alias"
    FREE_SUFFIX = "free_suffix"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFigures:
    """The members a stored row and a resolved budget share (tokens, bytes, USD per million tokens).

    None: a price or a length is not known; the row is not stored, or is of no project. A field is
    declared here alone: the API's bodies, the admin's form and the page that explains a budget are
    made of its marks (core.budgets.figures).
    """

    key: Annotated[str, Doc("Exact model id or prefix. Empty: the fallback."), Label(Section.ROW)]
    input_tokens: Annotated[
        Tokens,
        Doc("Safe ceiling of a whole prompt."),  # not the advertised window
        Label(Section.SIZE, "input", "tokens"),
    ]
    output_tokens: Annotated[Tokens, Label(Section.SIZE, "output", "tokens")]
    max_catalog_bytes: Annotated[
        int,
        Range(0),
        Doc("0: the catalog is never cut."),
        Label(Section.SIZE, "catalog at most", "bytes"),
    ] = 0
    tier: Annotated[Tier, Label(Section.TRUST, "tier")]
    allows_llm_filter: Annotated[bool, Label(Section.TRUST, "LLM filter")] = False
    filter_model: Annotated[str, Doc("Empty: the planning model itself."), Label(Section.TRUST)] = (
        ""
    )
    fallback_model: Annotated[
        str,
        Doc("Makes the plan when this model times out or is unavailable. Empty: none."),
        Label(Section.TRUST),
    ] = ""
    is_hybrid_reasoning: Annotated[bool, Label(Section.TRUST, "hybrid reasoning")] = False
    wants_strict_json: Annotated[bool, Label(Section.TRUST, "strict JSON")] = False
    supports_prefix_cache: Annotated[bool, Label(Section.TRUST, "prefix cache")] = False
    cached_input_cost_usd_per_mtok: Annotated[
        UsdPerMtok, Label(Section.COST, unit=_USD, listed="cached input")
    ] = 0.0
    input_cost_usd_per_mtok: Annotated[
        UsdPerMtok | None, Label(Section.COST, unit=_USD, listed="input")
    ] = None
    cache_write_cost_usd_per_mtok: Annotated[
        UsdPerMtok | None,
        Doc("Of tokens that are written to a cache. Null: as other input."),
        Label(Section.COST, unit=_USD, listed="written to a cache"),
    ] = None
    output_cost_usd_per_mtok: Annotated[
        UsdPerMtok | None, Label(Section.COST, unit=_USD, listed="output")
    ] = None
    context_length: Annotated[
        Tokens | None,
        Doc("Advertised; null: unknown."),
        Label(Section.HEALTH, unit="tokens", listed="window"),
    ] = None
    input_length: Annotated[
        Tokens | None,
        Doc("Advertised; null: unknown."),
        Label(Section.HEALTH, unit="tokens", listed="longest input"),
    ] = None
    chars_per_token: Annotated[
        float,
        Range(0.1, 100),
        Doc("UTF-8 bytes of one token."),
        Label(Section.ESTIMATE, "bytes per token"),
    ] = 4.0
    safety_multiplier: Annotated[
        float, Range(1, 10), Label(Section.ESTIMATE, "safety multiplier")
    ] = 1.2
    reserve_tokens: Annotated[int, Range(0), Label(Section.ESTIMATE, "reserve", "tokens")] = 2000
    evidence: Annotated[
        str, Multiline(20_000), Doc("Why these numbers, and their source."), Label(Section.ROW)
    ] = ""
    enabled: Annotated[bool, Label(Section.ROW)] = True
    budget_id: Annotated[int | None, HIDDEN] = None
    project: Annotated[str | None, HIDDEN] = None  # None: every project

    @property
    def uses_json_mode(self) -> bool:
        """Whether the provider is asked for its JSON mode, which aborts where output breaks."""
        return self.wants_strict_json and has_full_trust(self.tier)

    @property
    def abilities(self) -> tuple[str, ...]:
        """The names of the flags that are set."""
        return tuple(
            each.label.name
            for each in STORED_FIELDS
            if each.kind is bool and each.label.name and getattr(self, each.name)
        )

    @property
    def estimator(self) -> Estimator:
        """Estimates tokens by the row's `chars_per_token` and `safety_multiplier`."""
        return _estimator(self.chars_per_token, self.safety_multiplier)


# A table of budgets has few pairs of factors, and each call is estimated by one.
@lru_cache(maxsize=256)
def _estimator(chars_per_token: float, safety_multiplier: float) -> Estimator:
    return Estimator(chars_per_token=chars_per_token, safety_multiplier=safety_multiplier)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpec(BudgetFigures):
    """One row as an operator edits it; None means "as the default has it"."""

    prompt_variant: Annotated[PromptVariant | None, Doc("Null: by tier."), Label(Section.TRUST)] = (
        None
    )
    optimal_max_tokens: Annotated[
        Tokens | None,
        Doc("Null: 100,000; 70 % of a limit below 128,000."),
        Label(Section.HEALTH, unit="tokens", listed="caution above"),
    ] = None
    critical_max_tokens: Annotated[
        Tokens | None,
        Doc("Null: 90 % of the limit."),
        Label(Section.HEALTH, unit="tokens", listed="critical above"),
    ] = None
    # The column is a small one.
    caution_cadence: Annotated[
        int | None,
        Range(1, 2**31 - 1),
        Doc("Null: 10."),
        Label(Section.HEALTH, unit="generations", listed="cadence of hard guidance"),
    ] = None
    uses_published_list: Annotated[
        bool,
        Doc(
            "Of the fallback alone: windows and prices that no row knows are those that vendors "
            "publish."
        ),
        Label(Section.ROW, listed="published list"),
    ] = False
    window_by: Annotated[WindowBy, HIDDEN] = WindowBy.OPERATOR

    def stored(self) -> dict[str, Any]:
        """What a row stores of it, by name."""
        return {each.name: getattr(self, each.name) for each in STORED_FIELDS}


# What a row stores of them, by name; the rest is given by the database.
STORED_FIELDS: Final = fields_of(BudgetSpec)


@answer("Effective")
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveBudget(BudgetFigures):
    """The figures that hold for one model, every default filled in.

    The `:free` rule is applied. model: as asked, trimmed. `critical_max_tokens` is None only while
    the limit is unknown and the row sets no line. is_shipped: the window of the governing row is
    no operator's word.
    """

    model: str
    rule: MatchRule
    budget_id: int | None = None
    prompt_variant: PromptVariant
    optimal_max_tokens: int
    critical_max_tokens: int | None
    caution_cadence: int
    limit_tokens: int | None
    limit_source: LimitSource | None
    optimal_source: Annotated[
        LineSource,
        Doc(
            "budget: the row sets it. default: 100,000. share_of_limit: 70 % of a "
            "limit below 128,000. share_of_critical: the row's critical line is low, and this "
            "seven ninths of it."
        ),
    ]
    critical_source: Annotated[
        LineSource, Doc("budget, share_of_limit (90 %), or unknown like the limit.")
    ]
    is_shipped: Annotated[bool, HIDDEN] = False
    claims: Annotated[
        tuple[WindowClaim, ...],
        JsonName("windows"),
        Doc("What each source says, the one that counts first."),
    ] = ()
    # The call that shows a word to be wrong.
    disproved_by: Annotated[WindowReport | None, JsonName("limit_disproved")] = None
    trial: Annotated[InTrial | None, HIDDEN] = None  # of a conversation that is in one

    @property
    def most_prompt_tokens(self) -> int:
        """The tokens a prompt that is made for the model may have: what its row thinks safe, and no
        more than the limit, which a server or a refusal may have told to be far below that."""
        if self.limit_tokens is None:
            return self.input_tokens
        return min(self.input_tokens, self.limit_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another spelling: an id that starts with `prefix` is looked up as `target` + the rest."""

    prefix: str
    target: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A rule that was considered.

    why: a sentence.
    """

    key: str
    rule: MatchRule
    won: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The row that governs the model.

    key "": the fallback. budget_id None: the row is not stored.
    """

    key: str
    rule: MatchRule
    budget_id: int | None


@answer("Resolved")
@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A lookup, explained.

    Exactly one candidate won. budget_id None: the row is not stored.
    """

    model: str
    budget: EffectiveBudget
    matched_key: Annotated[str, HIDDEN]
    rule: Annotated[MatchRule, HIDDEN]
    budget_id: Annotated[int | None, HIDDEN]
    candidates: tuple[Candidate, ...]

    @property
    @member
    def matched(self) -> Matched:
        """The row, and how it was found."""
        return Matched(key=self.matched_key, rule=self.rule, budget_id=self.budget_id)
