"""What must hold within one budget row, as sentences an operator can act on.

Pure, so that the admin, the API and the import all say the same.
"""

from __future__ import annotations

from helmdash.core.budgets.budgets import BudgetSpec
from helmdash.core.budgets.lines import lines_of
from helmdash.core.budgets.model_names import split_window


def budget_problems(budget: BudgetSpec) -> tuple[tuple[str, str], ...]:
    """Pairs of (field, sentence) for everything wrong with the row; empty when it is sound."""
    return (
        *_key_problems(budget),
        *_fallback_problems(budget),
        *_threshold_problems(budget),
    )


def length_note(budget: BudgetSpec) -> str | None:
    """What a person should know of the two lengths; None: nothing. Never an error: which of them is
    smaller, the limit goes by it."""
    window, longest = budget.context_length, budget.input_length
    if window is None or longest is None or longest <= window:
        return None
    return (
        f"The input_length ({longest}) is larger than the context_length ({window}): the smaller"
        " one is the limit. Is one of them a slip?"
    )


def shadowed_keys(key: str, others: tuple[str, ...]) -> tuple[str, ...]:
    """Longer keys of the table that this prefix would also fit, and that win over it."""
    low = key.strip().lower()
    return tuple(o for o in others if low and o.lower() != low and o.lower().startswith(low))


def _key_problems(budget: BudgetSpec) -> list[tuple[str, str]]:
    key = budget.key.strip()
    model = split_window(key).model
    if model == key:
        return []
    suffix = key[len(model) :].strip()
    return [
        (
            "key",
            (
                f"Leave {suffix} out: it names no model of its own, so the row would govern"
                f" nothing. The row {model} governs {model}{suffix}, too."
            ),
        )
    ]


def _fallback_problems(budget: BudgetSpec) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    if budget.key == "" and not budget.enabled:
        problems.append(
            (
                "enabled",
                "The fallback cannot be disabled: it governs every model without a row of its own.",
            )
        )
    key = budget.key.strip().lower()
    if key and budget.uses_published_list:
        problems.append(
            (
                "uses_published_list",
                "Only the fallback (the row with an empty key) says so, for all models.",
            )
        )
    if key and budget.fallback_model.strip().lower() == key:
        problems.append(
            ("fallback_model", "Name another model: this one cannot stand in for itself.")
        )
    return problems


def _threshold_problems(budget: BudgetSpec) -> list[tuple[str, str]]:
    known = [n for n in (budget.context_length, budget.input_length) if n is not None]
    limit = min(known) if known else budget.input_tokens
    problems = []
    critical, optimal = budget.critical_max_tokens, budget.optimal_max_tokens
    if critical is not None and critical > limit:
        problems.append(
            (
                "critical_max_tokens",
                (
                    f"critical_max_tokens ({critical}) is above the limit ({limit}): the model"
                    " would reject a prompt before it turns red. Lower it or raise the limit."
                ),
            )
        )
    line = lines_of(optimal, critical, limit=limit).critical_max_tokens or limit
    if optimal is not None and optimal >= line:
        said = "critical_max_tokens" if critical is not None else "the default critical line"
        problems.append(
            (
                "optimal_max_tokens",
                f"optimal_max_tokens ({optimal}) must be below {said} ({line}).",
            )
        )
    return problems
