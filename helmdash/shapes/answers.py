"""What programs get, where several doors give it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.core.budgets.budgets import LimitSource, LineSource, MatchRule, PromptVariant, Tier
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.learned_windows import ClaimState
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import Advice, FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.shapes.catalogs import AnyCatalog

# Words that core keeps as plain text.
KindText = Annotated[str, WithJsonSchema({"type": "string", "enum": ["pack", "pipeline"]})]
VariantText = Annotated[
    str, WithJsonSchema({"type": "string", "enum": ["full_steps", "single_pick"]})
]


ModelKey = Annotated[
    str, Field(description="What figures and filters know the model by, however it is spelt.")
]
ClientWindow = Annotated[
    int | None, Field(description="Tokens of context that the client counts on.")
]


class Cause(TypedDict):
    """Why a call gave nothing usable, the rule that says so, and what to do."""

    name: FailureCause
    rule: str
    advice: Advice
    detail: str


class Health(TypedDict):
    """The level of a call with the figures it was judged by."""

    level: Level
    reason: HealthReason | None
    prompt_tokens: int | None
    limit_tokens: int | None
    limit_source: LimitSource | None
    optimal_max_tokens: int | None
    critical_max_tokens: int | None
    hard_util: float | None
    optimal_util: float | None


class Client(TypedDict):
    """The program that made a call, as far as it names itself."""

    name: str
    version: str | None


class Recorded(TypedDict):
    """The answer to a recorded call; the same for every repeat of its id."""

    id: str
    conversation: str | None
    round: int | None
    generation: int | None
    health: Health
    finish_reason: FinishReason | None
    cause: Cause | None
    duplicate: bool


class Counts(TypedDict):
    """Over all rounds."""

    calls: int
    rounds: int
    failures: int
    trims: int


class Standing(TypedDict):
    """How a conversation stands after its newest call."""

    id: str
    model: str
    model_key: ModelKey
    client: Client | None
    client_window: ClientWindow
    round: int
    generation: int
    health: Health
    known_level: Level | None
    counts: Counts


class Figures(TypedDict):
    """The members a row and an effective budget share."""

    key: str
    input_tokens: int
    output_tokens: int
    max_catalog_bytes: int
    tier: Tier
    allows_llm_filter: bool
    filter_model: str
    fallback_model: str
    is_hybrid_reasoning: bool
    wants_strict_json: bool
    supports_prefix_cache: bool
    cached_input_cost_usd_per_mtok: float
    input_cost_usd_per_mtok: float | None
    output_cost_usd_per_mtok: float | None
    context_length: int | None
    input_length: int | None
    chars_per_token: float
    safety_multiplier: float
    reserve_tokens: int
    evidence: str
    enabled: bool


class WindowClaim(TypedDict):
    """What one source says of a model's window, and what became of its word."""

    source: LimitSource
    tokens: int
    state: ClaimState
    is_operators: Annotated[bool, Field(description="An operator's own number: it always counts.")]
    seen_at: datetime | None
    call_id: Annotated[str | None, Field(description="The call that told it.")]


class LimitDisproved(TypedDict):
    """A call that was answered although its prompt was far longer than a limit."""

    prompt_tokens: int
    seen_at: datetime | None
    call_id: str | None


class Effective(Figures):
    """The figures that hold for one model, every default filled in."""

    model: str
    rule: MatchRule
    budget_id: int | None
    prompt_variant: PromptVariant
    optimal_max_tokens: int
    critical_max_tokens: int | None
    caution_cadence: int
    limit_tokens: int | None
    limit_source: LimitSource | None
    windows: Annotated[list[WindowClaim], Field(description="Everybody's word, best first.")]
    limit_disproved: LimitDisproved | None
    optimal_source: Annotated[
        LineSource,
        Field(
            description="budget: the row sets it. default: 100,000. share_of_limit: 70 % of a "
            "limit below 128,000. share_of_critical: the row's critical line is low, and this "
            "seven ninths of it."
        ),
    ]
    critical_source: Annotated[
        LineSource,
        Field(description="budget, share_of_limit (90 %), or unknown like the limit."),
    ]


class CompactionStep(TypedDict):
    """What one step changed and saved."""

    label: str
    entries: int
    bytes_saved: int


class CompactionEntry(TypedDict):
    """An entry by its rank for the intent."""

    id: str
    kind: KindText
    rank: int
    score: float
    history: Annotated[float, Field(description="What past plans add to the score.")]


class Compaction(TypedDict):
    """The receipt of fitting (the Trim)."""

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    dropped: list[str]
    steps: list[CompactionStep]
    kept: list[CompactionEntry]
    removed: list[CompactionEntry]
    versions: dict[str, str]
    timings_ms: dict[str, float]


_ResponseFormat = Annotated[str, WithJsonSchema({"type": "string", "enum": ["", "json_object"]})]
_Placement = Annotated[str, WithJsonSchema({"type": "string", "enum": ["system", "user"]})]


class Fitted(TypedDict):
    """The catalog to send, and how."""

    fit_id: str
    catalog: AnyCatalog
    compaction: Compaction
    budget: Effective
    prompt_variant: VariantText
    response_format: _ResponseFormat
    catalog_placement: _Placement
