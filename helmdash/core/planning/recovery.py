"""Recovery: how the next try differs, for each cause of a failed one.

A try that would be the same as an earlier one is not made, since the model already answered it; but
for an error inside of a reply, once, as the transport does after the same error with a status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, assert_never

from helmdash.core.budgets.budgets import EffectiveBudget, PromptVariant, has_full_trust
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.planning.prompts import Task

# Stored with every plan. Another next try for the same cause is a new version.
RECOVERY_VERSION: Final = "recovery-1"

# A try on a free route takes up to minutes, and the caller waits (helmdeck ADR 053: 15 to 95 s).
MAX_TRIES: Final = 3

# Added to a hybrid reasoning model's output: the plans of helmdeck ADR 053 spent up to 1,400 tokens
# on thoughts beside 200 visible ones, and hidden tokens count against the cap.
THINKING_TOKENS: Final = 2_000
# The most that a repeated try asks for: the largest output figure of the shipped budgets.
MOST_OUTPUT_TOKENS: Final = 8_000
# Twelve numbers take under 100 tokens; the rest is for thoughts of models that no row marks as
# hybrid (helmdeck ADR 053: 423 tokens for a list of 71 characters; a cap of 600 cut two lists).
FILTER_TOKENS: Final = 1_500
# The twelve best entries of the demo catalog, a line each, take 1.9 to 2.7 KB; far below that,
# tools which the ranking is sure of would have to go.
CATALOG_FLOOR_BYTES: Final = 2_500
# A catalog that shrinks by less than a quarter is hardly another prompt.
_WORTHWHILE: Final = 0.75

_ONLY_JSON: Final = "Your last answer could not be read. Answer with the JSON object only."
_LONGEST_DETAIL: Final = 300  # of a cause, when the model is told


@dataclass(frozen=True, slots=True, kw_only=True)
class TrySettings:
    """How a try is made. `max_tokens`: output, thoughts included. `catalog_bytes`: a further cap
    on the catalog, None as the budget has it. `note`: a hint for the model, "" for none."""

    model: str
    variant: PromptVariant
    json_mode: bool
    max_tokens: int
    catalog_bytes: int | None
    note: str


def first_try(
    budget: EffectiveBudget,
    *,
    variant_override: PromptVariant | None = None,
    max_tokens: int | None = None,
) -> TrySettings:
    """The settings to begin with. variant_override, and max_tokens above 0, go before the budget's;
    None: the budget's."""
    return TrySettings(
        model=budget.model,
        variant=variant_override or budget.prompt_variant,
        json_mode=budget.uses_json_mode,
        max_tokens=max_tokens if max_tokens and max_tokens > 0 else _output_tokens(budget),
        catalog_bytes=None,
        note="",
    )


def filter_tokens(budget: EffectiveBudget) -> int:
    """The output cap of a filter pass (the budget is the filtering model's own)."""
    thinking = THINKING_TOKENS if budget.is_hybrid_reasoning else 0
    return min(budget.output_tokens, FILTER_TOKENS) + thinking


def next_try(
    settings: TrySettings,
    cause: Cause,
    *,
    budget: EffectiveBudget,
    catalog_bytes: int,
    tried: Sequence[TrySettings],
    task: Task = Task.PLAN,
    fallback: EffectiveBudget | None = None,
) -> tuple[TrySettings, str] | None:
    """What to try after `settings` failed by `cause`, and why; None: give the failure back.

    catalog_bytes: of the catalog sent. tried: all settings so far, with or without these (with
    them once they are a repetition). fallback: the budget of `budget.fallback_model`; without it
    a fallback keeps the variant and the output cap, and goes without JSON mode.
    """
    so_far = [*tried, settings] if settings not in tried else list(tried)
    if len(so_far) >= MAX_TRIES:
        return None
    known = _Failed(
        settings=settings,
        cause=cause,
        budget=budget,
        catalog_bytes=catalog_bytes,
        tried=tuple(so_far),
        task=task,
        fallback=fallback,
    )
    found = _ways_after(cause.name, known)
    if cause.name in _OTHERS_END and len(so_far) == MAX_TRIES - 1:
        found = chain(_other_model(known), found)
    return next(((then, why) for then, why in found if _is_new(then, known)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A failed try, and what there is to choose from."""

    settings: TrySettings
    cause: Cause
    budget: EffectiveBudget
    catalog_bytes: int
    tried: tuple[TrySettings, ...]
    task: Task
    fallback: EffectiveBudget | None


def _is_new(then: TrySettings, failed: _Failed) -> bool:
    """Whether a try is none of those made; or the same once more, where that may help."""
    if then not in failed.tried:
        return True
    is_first_repetition = len(set(failed.tried)) == len(failed.tried)
    may_repeat = failed.cause.name is FailureCause.UPSTREAM_ERROR_IN_200
    return may_repeat and is_first_repetition and then == failed.settings


# Ways out, the best first.
_Ways = Iterator[tuple[TrySettings, str]]


def _after_length(failed: _Failed) -> _Ways:
    """The output cap cut the answer: ask for less, then allow more."""
    yield from _single_pick(failed, "The output was cut off, so only the next step is asked for.")
    yield from _more_output(failed)


def _after_thoughts(failed: _Failed) -> _Ways:
    """All output went into thoughts: asking for less shortens them little, so allow more too."""
    more = next((then for then, _ in _more_output(failed)), failed.settings)
    yield from _single_pick(
        replace(failed, settings=more),
        "The model spent its output on reasoning, so only the next step is asked for, with more "
        "output.",
    )
    yield from _more_output(failed)


def _after_garble(failed: _Failed) -> _Ways:
    """What came was no usable JSON: weak models fall into prose when the prompt is large."""
    yield from _without_json_mode(failed)
    yield from _single_pick(
        failed, "The answer could not be read, so only the next step is asked for."
    )
    told = replace(failed, settings=replace(failed.settings, note=_ONLY_JSON))
    smaller = (
        (
            then,
            (
                f"The answer could not be read, so the catalog is cut to {then.catalog_bytes:,} "
                "bytes and the model is told to give the JSON object only."
            ),
        )
        for then, _ in _smaller_catalog(told)
    )
    with_note = (
        told.settings,
        "The answer could not be read, so the model is told to give the JSON object only.",
    )
    if _shows_all(failed.budget) and len(failed.tried) < MAX_TRIES - 1:
        yield with_note
        yield from smaller
    else:
        yield from smaller
        yield with_note


def _shows_all(budget: EffectiveBudget) -> bool:
    """Whether the model can take a whole catalog, so that less of it is the last thing to try."""
    return has_full_trust(budget.tier) and budget.max_catalog_bytes <= 0


def _after_silence(failed: _Failed) -> _Ways:
    """Nothing came: large prompts are the usual reason (helmdeck ADR 050)."""
    if failed.cause.advice is Advice.OTHER_MODEL:
        yield from _other_model(failed)
    yield from _smaller_catalog(failed)
    yield from _other_model(failed)


def _after_empty_plan(failed: _Failed) -> _Ways:
    """The model was heard and gave nothing to do: tell it once what was wrong."""
    if failed.cause.advice is Advice.SURFACE:
        return
    if not failed.settings.note:
        detail = " ".join(failed.cause.detail.split())[:_LONGEST_DETAIL]
        yield (
            replace(failed.settings, note=f"Your last answer could not be used: {detail}"),
            "The answer could not be used, so the model is told what was wrong with it.",
        )
    yield from _other_model(failed)


def _after_error_in_reply(failed: _Failed) -> _Ways:
    """The provider's trouble under a status of success, which the transport does not repeat."""
    yield (
        failed.settings,
        "The reply was an error under a status of success, so the same is asked once more.",
    )
    yield from _other_model(failed)


def _after_trouble(failed: _Failed) -> _Ways:
    """The provider's trouble, not the prompt's; ours, when HelmDash itself was stopped."""
    if failed.cause.rule != "gateway.stopped":
        yield from _other_model(failed)


def _after_bad_request(failed: _Failed) -> _Ways:
    """Refused as asked: only where the provider says which part it does not take."""
    if failed.cause.advice is Advice.WITHOUT_JSON_MODE:
        yield from _without_json_mode(failed)
    elif failed.cause.advice is Advice.OTHER_MODEL:
        yield from _other_model(failed)


def _ways_after(cause: FailureCause, failed: _Failed) -> _Ways:
    match cause:
        case FailureCause.LENGTH_TRUNCATED:
            return _after_length(failed)
        case FailureCause.REASONING_EXHAUSTED:
            return _after_thoughts(failed)
        case FailureCause.CONSTRAINED_DEADLOCK | FailureCause.UNDECODABLE:
            return _after_garble(failed)
        case (
            FailureCause.LIKELY_TIMEOUT
            | FailureCause.EMPTY_COMPLETION
            | FailureCause.TIMED_OUT
            | FailureCause.CONTEXT_OVERFLOW
        ):
            return _after_silence(failed)
        case FailureCause.EMPTY_PLAN:
            return _after_empty_plan(failed)
        case FailureCause.RATE_LIMITED | FailureCause.UNREACHABLE | FailureCause.UPSTREAM_ERROR:
            return _after_trouble(failed)
        case FailureCause.UPSTREAM_ERROR_IN_200:
            return _after_error_in_reply(failed)
        case FailureCause.BAD_REQUEST:
            return _after_bad_request(failed)
        case FailureCause.SAFETY_FILTERED | FailureCause.REFUSED | FailureCause.AUTH_FAILED:
            return iter(())  # the same would be refused again
        case FailureCause.CLIENT_DISCONNECTED:
            return iter(())  # nobody waits any more
        case _:
            assert_never(cause)


# A model that is silent or garbles twice may well do so again, so the last try goes to the
# configured fallback; what was cut off or thought too long has a remedy of its own.
_OTHERS_END: Final = frozenset(
    (
        FailureCause.CONSTRAINED_DEADLOCK,
        FailureCause.UNDECODABLE,
        FailureCause.LIKELY_TIMEOUT,
        FailureCause.EMPTY_COMPLETION,
        FailureCause.TIMED_OUT,
    )
)


def _single_pick(failed: _Failed, why: str) -> _Ways:
    is_plan = failed.task is Task.PLAN  # a route is a single pick already
    if is_plan and failed.settings.variant is not PromptVariant.SINGLE_PICK:
        yield replace(failed.settings, variant=PromptVariant.SINGLE_PICK), why


def _more_output(failed: _Failed) -> _Ways:
    now = failed.settings.max_tokens
    most = MOST_OUTPUT_TOKENS
    if failed.budget.context_length:
        # More than half of the window would leave no room for the prompt.
        most = min(most, failed.budget.context_length // 2)
    more = min(now * 2, most)
    if more > now:
        yield (
            replace(failed.settings, max_tokens=more),
            f"The output was cut off, so up to {more:,} tokens are allowed.",
        )


def _without_json_mode(failed: _Failed) -> _Ways:
    if failed.settings.json_mode:
        yield (
            replace(failed.settings, json_mode=False),
            "JSON mode failed, so it is left out.",
        )


def _smaller_catalog(failed: _Failed) -> _Ways:
    now = failed.catalog_bytes
    less = max(now // 2, CATALOG_FLOOR_BYTES)
    if less <= now * _WORTHWHILE:
        yield (
            replace(failed.settings, catalog_bytes=less),
            f"Nothing usable came back, so the catalog is cut to {less:,} bytes.",
        )


def _other_model(failed: _Failed) -> _Ways:
    """The configured fallback, once: not from one fallback on to the next."""
    now, name = failed.settings, failed.budget.fallback_model.strip()
    if not name or any(made.model != now.model for made in failed.tried):
        return
    if name.casefold() == now.model.strip().casefold():
        return
    why = f"{now.model} gave nothing usable, so {name} is asked."
    if failed.fallback is not None:
        yield _afresh(failed, failed.fallback), why
    else:
        yield replace(now, model=name, json_mode=False, catalog_bytes=None), why


def _afresh(failed: _Failed, fallback: EffectiveBudget) -> TrySettings:
    """A fallback begins as its own budget has it; what the caller chose still holds."""
    first, budget = failed.tried[0], failed.budget
    chose_variant = first.variant is not budget.prompt_variant
    chose_output = first.max_tokens != _output_tokens(budget)
    return first_try(
        fallback,
        variant_override=first.variant if chose_variant else None,
        max_tokens=first.max_tokens if chose_output else None,
    )


def _output_tokens(budget: EffectiveBudget) -> int:
    thinking = THINKING_TOKENS if budget.is_hybrid_reasoning else 0
    return budget.output_tokens + thinking
