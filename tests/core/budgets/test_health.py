"""Levels by strict lines; unknown says why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import HealthReason, assess
from helmdash.core.budgets.levels import LEVELS, Level
from tests import builders
from tests.builders import FALLBACK


def make_budget(
    *,
    context_length: int | None = 200_000,
    input_length: int | None = None,
    optimal: int | None = None,
    critical: int | None = None,
    input_tokens: int = 16_000,
) -> EffectiveBudget:
    return builders.make_budget(
        key="m",
        context_length=context_length,
        input_length=input_length,
        optimal_max_tokens=optimal,
        critical_max_tokens=critical,
        input_tokens=input_tokens,
    )


@pytest.mark.parametrize(
    ("prompt_tokens", "level"),
    [
        (1, Level.HEALTHY),
        (100_000, Level.HEALTHY),  # on the line is still the lower level
        (100_001, Level.CAUTION),
        (180_000, Level.CAUTION),
        (180_001, Level.CRITICAL),
        (500_000, Level.CRITICAL),
    ],
)
def test_default_lines_of_a_200k_window(prompt_tokens: int, level: Level) -> None:
    assert assess(prompt_tokens, make_budget()).level is level


@pytest.mark.parametrize(
    ("prompt_tokens", "level"),
    [
        (50, Level.HEALTHY),
        (51, Level.CAUTION),
        (70, Level.CAUTION),
        (71, Level.CRITICAL),
    ],
)
def test_configured_lines(prompt_tokens: int, level: Level) -> None:
    budget = make_budget(context_length=100, optimal=50, critical=70)

    assert assess(prompt_tokens, budget).level is level


def test_a_small_window_has_a_caution_too() -> None:
    budget = make_budget(context_length=8192)

    assert (budget.optimal_max_tokens, budget.critical_max_tokens) == (5734, 7372)
    assert assess(5734, budget).level is Level.HEALTHY
    assert assess(5735, budget).level is Level.CAUTION
    assert assess(7372, budget).level is Level.CAUTION
    assert assess(7373, budget).level is Level.CRITICAL


def test_ratios_are_not_clamped_and_name_their_lines() -> None:
    health = assess(300_000, make_budget())

    assert health.hard_util == 1.5
    assert health.optimal_util == 3.0
    assert (health.limit_tokens, health.critical_max_tokens) == (200_000, 180_000)
    assert health.limit_source == "context_length"
    assert health.reason is None


@pytest.mark.parametrize("prompt_tokens", [None, 0, -3])
def test_without_usage_the_level_is_unknown(prompt_tokens: int | None) -> None:
    health = assess(prompt_tokens, make_budget())

    assert health.level is Level.UNKNOWN
    assert health.reason is HealthReason.USAGE_UNAVAILABLE
    assert health.prompt_tokens is None
    assert health.hard_util is None
    assert health.optimal_util is None
    assert health.limit_tokens == 200_000


def test_without_a_limit_the_level_is_unknown_but_the_count_is_kept() -> None:
    health = assess(5000, BudgetTable([FALLBACK]).lookup("never-seen"))

    assert health.level is Level.UNKNOWN
    assert health.reason is HealthReason.MODEL_LIMIT_UNAVAILABLE
    assert health.prompt_tokens == 5000
    assert health.limit_tokens is None
    assert health.critical_max_tokens is None
    assert health.hard_util is None
    assert health.optimal_util == 0.05


def test_without_usage_and_limit_the_usage_is_named() -> None:
    health = assess(None, BudgetTable([FALLBACK]).lookup("never-seen"))

    assert health.reason is HealthReason.USAGE_UNAVAILABLE


def test_a_row_without_lengths_is_judged_by_its_own_ceiling() -> None:
    health = assess(15_000, make_budget(context_length=None, input_tokens=16_000))

    assert (health.limit_tokens, health.limit_source) == (16_000, "budget")
    assert health.level is Level.CRITICAL


SEVERITY = [Level.HEALTHY, Level.CAUTION, Level.CRITICAL]


@given(
    limit=st.integers(1, 2_000_000),
    optimal=st.none() | st.integers(1, 2_000_000),
    critical=st.none() | st.integers(1, 2_000_000),
    prompts=st.tuples(st.integers(1, 3_000_000), st.integers(1, 3_000_000)),
)
@settings(max_examples=80, deadline=None)
def test_more_tokens_never_give_a_better_level(
    limit: int, optimal: int | None, critical: int | None, prompts: tuple[int, int]
) -> None:
    budget = make_budget(context_length=limit, optimal=optimal, critical=critical)
    fewer, more = sorted(prompts)

    levels = [SEVERITY.index(assess(prompt, budget).level) for prompt in (fewer, more)]

    assert levels == sorted(levels)


def test_every_level_has_a_row_of_its_own() -> None:
    rows = list(LEVELS.values())

    assert list(LEVELS) == list(Level)
    assert [row.level for row in rows] == list(Level)
    for told in ("severity", "position", "word", "glyph", "css_class", "meaning"):
        assert len({getattr(row, told) for row in rows}) == len(rows), told
