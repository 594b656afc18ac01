"""Suggested edits of a budget: what was learned of a model, held against its budget of today.

Only what is shown is suggested, and only where it differs from today by more than its own error: a
figure that is about right is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant, has_full_trust
from helmdash.core.evidence.calls_behind import (
    calls_behind,
    clean_ones,
    counted_as,
    of_way,
    prompts_above,
    replies_cut_off,
    sizes_between,
)
from helmdash.core.evidence.estimator import Ratios
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.hard_window import Plateau, least_near
from helmdash.core.evidence.output_tokens import OutputNeed
from helmdash.core.evidence.planning_outcomes import FIRST_WAY, TierFinding, WayFinding
from helmdash.core.evidence.safe_input import SafeInput
from helmdash.core.rollups.periods import moment_of, quarter_of

# Off by less is not worth an edit: bands are half as wide again, windows are known to two percent.
_LEAST_OFF: Final = 0.03
# A tokenizer is learned to five percent; off by more is worth an edit if it then is off by less.
_LEAST_RATIO_ERROR: Final = 0.05
_LEAST_BETTER: Final = 0.02

Value = str | int | float | bool
"""What a column of a budget may be changed to."""


class SuggestionState(StrEnum):
    """What became of a suggestion. trial: it is tried, or was, and waits to be decided. gone: later
    calls no longer show it."""

    OPEN = "open"
    TRIAL = "trial"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"
    GONE = "gone"


# Somebody has still to decide.
UNDECIDED: Final = (SuggestionState.OPEN, SuggestionState.TRIAL)


# What the effect of an accepted edit is held against.
_MEASURED_BEFORE: Final = timedelta(days=30)


def before_edit(at: datetime) -> tuple[datetime, datetime]:
    """The 30 days before an edit, in whole quarter-hours: rollups alone tell what they came to."""
    end = moment_of(quarter_of(at))
    return end - _MEASURED_BEFORE, end


def after_edit(at: datetime) -> tuple[datetime, None]:
    """From the first whole quarter-hour after an edit on."""
    return moment_of(quarter_of(at - timedelta(microseconds=1)) + 1), None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """So many calls, of which so many were clean."""

    calls: int
    clean: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldNumber:
    """A number in a sentence, as it stands there, and the calls that it counts: how many, and the
    query that lists them."""

    text: str
    calls: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a figure is suggested: by which method, from how many calls of when.

    why: a sentence. low, high: the 95 % interval of what the method measured (of a fall: of one),
    None where it has none. touched: the recorded calls that the edit would have concerned (prompts
    above a ceiling, replies that were cut off); None: not counted. query, touched_query: of a list
    of calls from since to before until, that has just these (core.evidence.calls_behind). numbers:
    of the sentence, in its order, each with such a query.
    """

    method: str
    why: str
    calls: int
    since: datetime | None = None
    until: datetime | None = None
    low: float | None = None
    high: float | None = None
    touched: Counted | None = None
    query: str = ""
    touched_query: str = ""
    numbers: tuple[ToldNumber, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """An edit: columns of the budget and what they are to be."""

    figure: Figure
    upstream: str
    changes: Mapping[str, Value]
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class PartInput:
    """The safe input of the calls of one purpose, or with one prompt variant. kind: which."""

    kind: str
    name: str
    input: SafeInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """All that the calls of a model, or of one upstream of it, show.

    input: the safe input; its sizes are tokens, or bytes where input_in_bytes. above: calls above
    its ceiling. parts: by purpose and variant, where there are several. reasoning_output: of
    replies with reasoning alone. catalog: the safe size of catalogs in bytes.
    """

    model_key: str
    upstream: str
    calls: int
    since: datetime | None
    until: datetime | None
    input: SafeInput
    input_in_bytes: bool
    above: Counted | None
    parts: tuple[PartInput, ...]
    window: Plateau
    output: OutputNeed
    reasoning_output: OutputNeed
    ratios: Ratios
    catalog: SafeInput
    tier: TierFinding
    variant: WayFinding
    json_mode: WayFinding


def suggested(learned: Learned, budget: EffectiveBudget) -> Iterator[Suggested]:
    """The edits that what was learned suggests to today's budget."""
    for figure, changes, evidence in (
        _input(learned, budget),
        _window(learned, budget),
        _output(learned, budget),
        _ratio(learned, budget),
        _catalog(learned, budget),
        _tier(learned, budget),
        _variant(learned, budget),
        _json_mode(learned, budget),
    ):
        if changes:
            yield Suggested(
                figure=figure, upstream=learned.upstream, changes=changes, evidence=evidence
            )


def ceiling_tokens(learned: Learned) -> int | None:
    """The safe input in tokens; None: none was found, or bytes cannot be told in tokens."""
    ceiling = learned.input.ceiling
    if ceiling is None or not learned.input_in_bytes:
        return ceiling
    ratio = learned.ratios.bytes_per_token
    return None if ratio is None else int(ceiling / ratio)


_Edit = tuple[Figure, Mapping[str, Value], Evidence]


def _input(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found, ceiling = learned.input, ceiling_tokens(learned)
    interval = found.fall.interval()
    below, above = (_percent(*found.below), _percent(*found.above))
    why = (
        f"{below} answers just below {ceiling or 0:,} tokens are clean and {above} just above; so "
        "it is among like calls of the same time."
    )
    query = _query(learned, Figure.INPUT_TOKENS)
    evidence = _evidence(
        learned,
        Figure.INPUT_TOKENS,
        found.method,
        why,
        found.calls,
        since=since_of(learned, found),
        interval=interval,
        touched=learned.above,
        touched_query=prompts_above(query, ceiling=found.ceiling, in_bytes=learned.input_in_bytes)
        if found.ceiling is not None
        else "",
        numbers=_beside(found, query, "sent" if learned.input_in_bytes else "prompt"),
    )
    is_lower = ceiling is not None and ceiling < budget.input_tokens * (1 - _LEAST_OFF)
    changes = {"input_tokens": ceiling} if is_lower and ceiling else {}
    return Figure.INPUT_TOKENS, changes, evidence


def _window(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.window
    half = f" (half of it: {found.reported:,})" if found.is_half else ""
    why = (
        f"{found.met} of {found.cuts} prompts that were probably cut were counted as about "
        f"{found.tokens or 0:,} tokens{half}, whatever was sent."
    )
    query = _query(learned, Figure.CONTEXT_LENGTH)
    met = counted_as(query, least=least_near(found.reported or 0))
    numbers = _numbers((str(found.met), found.met, met), (str(found.cuts), found.cuts, query))
    evidence = _evidence(
        learned, Figure.CONTEXT_LENGTH, found.method, why, found.cuts, numbers=numbers
    )
    is_off = found.tokens is not None and (
        budget.limit_tokens is None or budget.limit_tokens > found.tokens * (1 + _LEAST_OFF)
    )
    return (
        Figure.CONTEXT_LENGTH,
        {"context_length": found.tokens} if is_off and found.tokens else {},
        evidence,
    )


def _output(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.output
    why = (
        f"{found.cut_off} of {found.replies} replies were cut off at their limit; 99 of 100 would "
        f"end within {found.tokens or 0:,} tokens."
    )
    touched = Counted(calls=found.cut_off, clean=0)
    query = _query(learned, Figure.OUTPUT_TOKENS)
    cut_off = replies_cut_off(query)
    evidence = _evidence(
        learned,
        Figure.OUTPUT_TOKENS,
        found.method,
        why,
        found.replies,
        touched=touched,
        touched_query=cut_off,
        numbers=_numbers(
            (str(found.cut_off), found.cut_off, cut_off), (str(found.replies), found.replies, query)
        ),
    )
    is_more = found.tokens is not None and found.tokens > budget.output_tokens
    return (
        Figure.OUTPUT_TOKENS,
        {"output_tokens": found.tokens} if is_more and found.tokens else {},
        evidence,
    )


def _ratio(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.ratios
    now, then = found.today_error or 0.0, found.error or 0.0
    why = (
        f"Estimates by {budget.chars_per_token:g} bytes a token are {now:.0%} off at the median, "
        f"by {found.bytes_per_token or 0:g} they would be {then:.0%}; with the margin 95 of 100 "
        "prompts are no longer than estimated."
    )
    evidence = _evidence(learned, Figure.CHARS_PER_TOKEN, found.method, why, found.calls)
    changes: dict[str, Value] = {}
    is_off = now > _LEAST_RATIO_ERROR and now - then > _LEAST_BETTER
    if is_off and found.bytes_per_token is not None and found.margin is not None:
        changes = {"chars_per_token": found.bytes_per_token, "safety_multiplier": found.margin}
    return Figure.CHARS_PER_TOKEN, changes, evidence


def _catalog(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found, today = learned.catalog, budget.max_catalog_bytes
    why = (
        f"{_percent(*found.below)} answers with catalogs just below {found.ceiling or 0:,} bytes "
        f"are clean and {_percent(*found.above)} just above."
    )
    evidence = _evidence(
        learned,
        Figure.MAX_CATALOG_BYTES,
        found.method,
        why,
        found.calls,
        since=since_of(learned, found),
        interval=found.fall.interval(),
        numbers=_beside(found, _query(learned, Figure.MAX_CATALOG_BYTES), "catalog"),
    )
    is_lower = found.ceiling is not None and (
        today == 0 or found.ceiling < today * (1 - _LEAST_OFF)
    )
    return (
        Figure.MAX_CATALOG_BYTES,
        {"max_catalog_bytes": found.ceiling} if is_lower and found.ceiling else {},
        evidence,
    )


def _tier(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.tier
    why = f"{found.share or 0:.0%} of {found.calls} structured answers are clean."
    query = _query(learned, Figure.TIER)
    evidence = _evidence(
        learned,
        Figure.TIER,
        found.method,
        why,
        found.calls,
        interval=found.interval,
        numbers=_share(found.calls, round((found.share or 0) * found.calls), query),
    )
    # What goes wrong above a ceiling says nothing of the answers below it.
    is_clear = learned.input.ceiling is None or budget.input_tokens <= (
        ceiling_tokens(learned) or 0
    )
    is_other = is_clear and found.tier is not None and found.tier is not budget.tier
    return Figure.TIER, {"tier": found.tier.value} if found.tier and is_other else {}, evidence


def _variant(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.variant
    better = PromptVariant.FULL_STEPS if found.better == FIRST_WAY else PromptVariant.SINGLE_PICK
    evidence = _of_way(
        learned, Figure.PROMPT_VARIANT, found, "all steps at once", "the next step only"
    )
    is_other = found.better is not None and better is not budget.prompt_variant
    return Figure.PROMPT_VARIANT, {"prompt_variant": better.value} if is_other else {}, evidence


def _json_mode(learned: Learned, budget: EffectiveBudget) -> _Edit:
    found = learned.json_mode
    wanted = found.better != FIRST_WAY
    evidence = _of_way(learned, Figure.WANTS_STRICT_JSON, found, "without JSON mode", "with it")
    # Tier C is never asked for it, whatever the row says.
    is_other = found.better is not None and wanted is not budget.wants_strict_json
    changes = {"wants_strict_json": wanted} if is_other and has_full_trust(budget.tier) else {}
    return Figure.WANTS_STRICT_JSON, changes, evidence


def _of_way(
    learned: Learned, figure: Figure, found: WayFinding, first: str, second: str
) -> Evidence:
    points = (found.fall.points or 0.0) * 100
    better, other = (first, second) if points > 0 else (second, first)
    why = (
        f"Among like calls of the same time {better} gives {abs(points):.0f} points more clean "
        f"answers than {other} ({found.calls[0]} calls {first}, {found.calls[1]} {second})."
    )
    query = _query(learned, figure)
    return _evidence(
        learned,
        figure,
        found.method,
        why,
        sum(found.calls),
        interval=found.fall.interval(),
        numbers=_numbers(
            (f"{found.calls[0]} calls", found.calls[0], of_way(query, figure, is_first=True)),
            (str(found.calls[1]), found.calls[1], of_way(query, figure, is_first=False)),
        ),
    )


def since_of(learned: Learned, found: SafeInput) -> datetime | None:
    """Since when the calls are that a safe input was found by: all of them, or the later half."""
    return learned.since if found.first_at is None else moment_of(found.first_at)


def _evidence(
    learned: Learned,
    figure: Figure,
    method: str,
    why: str,
    calls: int,
    *,
    since: datetime | None = None,
    interval: tuple[float, float] | None = None,
    touched: Counted | None = None,
    touched_query: str = "",
    numbers: tuple[ToldNumber, ...] = (),
) -> Evidence:
    return Evidence(
        method=method,
        why=f"{why} Calls of upstream {learned.upstream} alone." if learned.upstream else why,
        calls=calls,
        since=since or learned.since,
        until=learned.until,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        touched=touched,
        query=_query(learned, figure),
        touched_query=touched_query,
        numbers=numbers,
    )


def _beside(found: SafeInput, query: str, field: str) -> tuple[ToldNumber, ...]:
    """The shares beside a ceiling, as `_percent` says them: below it, then above."""
    sizes = found.sizes()
    if sizes is None:
        return ()
    below, above = (
        sizes_between(query, field=field, least=least, most=most) for least, most in sizes
    )
    return _share(*found.below, below) + _share(*found.above, above)


def _share(calls: int, clean: int, query: str) -> tuple[ToldNumber, ...]:
    if not calls:
        return ()
    return _numbers((f"{clean / calls:.0%}", clean, clean_ones(query)), (str(calls), calls, query))


def _numbers(*told: tuple[str, int, str]) -> tuple[ToldNumber, ...]:
    return tuple(ToldNumber(text=text, calls=calls, query=query) for text, calls, query in told)


def _query(learned: Learned, figure: Figure) -> str:
    return calls_behind(
        figure,
        model_key=learned.model_key,
        upstream=learned.upstream,
        in_bytes=learned.input_in_bytes,
    )


def _percent(calls: int, clean: int) -> str:
    return f"{clean / calls:.0%} of {calls}" if calls else "none of 0"
