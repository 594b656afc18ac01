"""Where each effective number of a budget comes from: its row, a default, or a rule."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.budgets.budgets import (
    STORED_FIELDS,
    BudgetSpec,
    EffectiveBudget,
    MatchRule,
    Resolution,
)
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.lines import LineSource

_LIMITS = {
    LimitSource.CONTEXT_LENGTH: "the row's context length (no shorter input length is known)",
    LimitSource.INPUT_LENGTH: "the row's input length, the smaller of the two lengths",
    LimitSource.BUDGET: "the row's input tokens: it knows neither length",
    LimitSource.REFUSAL: "a refusal of the provider's, which named it",
    LimitSource.SERVER: "the server that runs the model, which says so",
    LimitSource.PUBLISHED: "the list of what vendors publish, which the fallback row asks for",
    LimitSource.CLIENT: "the client, which counts on it (a suffix such as [1m], or a header)",
}
_CAUTION = {
    LineSource.FLAT: "default: 100,000",
    LineSource.SHARE_OF_LIMIT: "default: 70 % of a limit below 128,000",
    LineSource.SHARE_OF_CRITICAL: "default: seven ninths of the row's critical line, so that there "
    "is a caution below it",
}
_CRITICAL = {
    LineSource.SHARE_OF_LIMIT: "default: 90 % of the limit",
    LineSource.UNKNOWN: "no limit is known",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One effective member of a budget, with its unit; `source` says where it comes from."""

    name: str
    value: object
    unit: str
    source: str


def figures(resolution: Resolution, row: BudgetSpec | None) -> tuple[Figure, ...]:
    """Every effective number of a resolved budget; `row` is the stored row that won, None where it
    is not stored."""
    budget = resolution.budget
    whose = f"row {row.key}" if row and row.key else "the fallback row"
    plain = [
        Figure(
            name=each.label.name[:1].upper() + each.label.name[1:],
            value=getattr(budget, each.name),
            unit=each.label.unit,
            source=_plain_source(each.name, resolution, row, whose),
        )
        for each in STORED_FIELDS
        if each.label.name
    ]
    return (*_judged(resolution, row, whose), *plain)


def caution_default(budget: EffectiveBudget) -> str:
    """Which default the caution line is; "" where the row sets it."""
    return _CAUTION.get(budget.optimal_source, "")


def critical_default(budget: EffectiveBudget) -> str:
    """Which default the critical line is; "" where the row sets it."""
    return _CRITICAL.get(budget.critical_source, "")


def _judged(resolution: Resolution, row: BudgetSpec | None, whose: str) -> tuple[Figure, ...]:
    budget = resolution.budget
    limit = _LIMITS[budget.limit_source] if budget.limit_source else _why_unknown(budget)
    return (
        Figure(name="Limit", value=budget.limit_tokens, unit="tokens", source=limit),
        Figure(
            name="Critical above",
            value=budget.critical_max_tokens,
            unit="tokens",
            source=_CRITICAL.get(budget.critical_source, whose),
        ),
        Figure(
            name="Caution above",
            value=budget.optimal_max_tokens,
            unit="tokens",
            source=_CAUTION.get(budget.optimal_source, whose),
        ),
        Figure(
            name="Caution cadence",
            value=budget.caution_cadence,
            unit="generations",
            source=_or_default(row and row.caution_cadence, whose, "default: 10"),
        ),
        Figure(
            name="Prompt variant",
            value=budget.prompt_variant.value,
            unit="",
            source=_or_default(row and row.prompt_variant, whose, f"default of tier {budget.tier}"),
        ),
    )


def _plain_source(member: str, resolution: Resolution, row: BudgetSpec | None, whose: str) -> str:
    is_freed = resolution.rule is MatchRule.FREE_SUFFIX
    if is_freed and row is not None and getattr(row, member) != getattr(resolution.budget, member):
        return f"the :free rule (the row says {_plain(getattr(row, member))})"
    return whose


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _or_default(value: object, whose: str, default: str) -> str:
    return whose if value is not None else default


def _why_unknown(budget: EffectiveBudget) -> str:
    if budget.disproved_by is not None:
        return "unknown: a longer prompt was answered; add a budget with its context length"
    return (
        "unknown: only the fallback governs this model; add a budget for it, or use the published"
        " figures where they know it"
    )
