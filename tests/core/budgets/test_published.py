"""The list of published figures: which model finds which, and what of it holds beside a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from genai_prices.data import providers

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.judged import judge_health
from helmdash.core.budgets.learned_windows import (
    LimitSource,
    WindowBy,
    WindowReport,
    WindowSource,
)
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.published import PublishedFigures, PublishedList, read_published
from helmdash.core.budgets.windows import served_window
from tests.builders import make_spec
from tests.factories import NOW
from tests.support.published_models import LIST, made

FIGURES = PublishedFigures(
    context_length=256_000,
    input_cost_usd_per_mtok=3.0,
    cached_input_cost_usd_per_mtok=0.75,
    output_cost_usd_per_mtok=15.0,
)
OTHER = PublishedFigures(input_cost_usd_per_mtok=1.0)
KNOWN = PublishedList(
    source="a list",
    as_of="2026-11-29",
    providers={
        "x-ai": ({"grok-4": FIGURES}, (("grok-4-fast", OTHER), ("grok-", OTHER))),
        "groq": ({"llama": FIGURES}, ()),
        "acme": ({"shared": OTHER}, ()),
        "zeta": ({"shared": OTHER}, ()),
    },
    makers=("x-ai", "acme", "zeta"),
)


def test_the_file_in_the_repository_is_made_of_the_package(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--write-golden"):
        LIST.write_text(made(), encoding="utf-8")

    is_same = LIST.read_text(encoding="utf-8") == made()
    assert is_same, "published_models.json is older than genai-prices: run make golden"


def test_a_model_finds_what_the_package_finds_for_it() -> None:
    known = read_published(LIST.read_text(encoding="utf-8"))
    asked = found = 0
    for provider in providers:
        for model in provider.models:
            figures = known.find(f"{provider.id}/{model.id.lower()}")
            matched = provider.find_model(model.id)
            asked += matched is not None
            if figures is not None and matched is not None:
                found += 1
                assert figures.context_length == matched.context_window, (provider.id, model.id)

    assert asked > found > asked * 0.8  # without Hugging Face's routes, and what has no figures


@pytest.mark.parametrize(
    ("key", "figures"),
    [
        ("x-ai/grok-4", FIGURES),
        ("x-ai/grok-4-20260101", FIGURES),
        ("x-ai/grok-4-2026-01-01", FIGURES),
        ("x-ai/grok-4@20260101", FIGURES),
        ("x-ai/grok-4-fast-reasoning", OTHER),
        ("x-ai/grok-3", OTHER),
        ("x-ai/grok-3:free", None),  # no price of the paid one's
        ("x-ai/other", None),
        ("grok-4", FIGURES),
        ("llama", None),  # a reseller's
        ("grok-4:8b", None),  # of a server of one's own
        ("shared", None),  # of two makers
        ("box/x-ai/grok-4", None),  # another server's own
        ("", None),
        ("/", None),
    ],
)
def test_a_model_is_found_by_its_name_its_day_or_how_it_begins(
    key: str, figures: PublishedFigures | None
) -> None:
    assert KNOWN.find(key) is figures


def effective(
    *rows: Any, model: str = "x-ai/grok-4", is_used: bool = True, **over: Any
) -> EffectiveBudget:
    fallback = make_spec(input_tokens=16_000, uses_published_list=is_used)
    return BudgetTable([fallback, *rows], published=KNOWN, **over).lookup(model)


def told(source: WindowSource, tokens: int) -> dict[str, Any]:
    return {"windows": [WindowReport(key="x-ai/grok-4", source=source, tokens=tokens, seen_at=NOW)]}


@pytest.mark.parametrize(
    ("found", "limit", "source"),
    [
        (effective(), 256_000, LimitSource.PUBLISHED),
        (effective(is_used=False), None, None),
        (effective(model="x-ai/grok-3"), None, None),  # without a window in the list
        (effective(model="who/knows"), None, None),
        (effective(make_spec("x-ai/", context_length=100_000)), 100_000, "context_length"),
        (effective(**told(WindowSource.SERVER, 8_192)), 8_192, "server"),
        (effective(**told(WindowSource.REFUSAL, 9_000)), 9_000, "refusal"),
        (effective(**told(WindowSource.SUCCESS, 400_000)), None, None),  # disproved
        # A row that HelmDash ships comes first; where it is disproved, the list is next.
        (
            effective(make_spec("x-ai/", context_length=64_000, window_by=WindowBy.SHIPPED)),
            64_000,
            "context_length",
        ),
        (
            effective(
                make_spec("x-ai/", context_length=64_000, window_by=WindowBy.SHIPPED),
                **told(WindowSource.SUCCESS, 200_000),
            ),
            256_000,
            LimitSource.PUBLISHED,
        ),
    ],
)
def test_a_published_window_counts_where_nobody_has_told_another(
    found: EffectiveBudget, limit: int | None, source: str | None
) -> None:
    assert (found.limit_tokens, found.limit_source) == (limit, source)


def prices(found: EffectiveBudget) -> tuple[float | None, ...]:
    return (
        found.input_cost_usd_per_mtok,
        found.cached_input_cost_usd_per_mtok,
        found.cache_write_cost_usd_per_mtok,
        found.output_cost_usd_per_mtok,
    )


def test_published_prices_hold_where_a_row_leaves_them_open() -> None:
    assert prices(effective()) == (3.0, 0.75, None, 15.0)
    assert prices(effective(is_used=False)) == (None, 0.0, None, None)
    # A price of cached input alone is of another day.
    row = make_spec("x-ai/", cached_input_cost_usd_per_mtok=7.5)
    assert prices(effective(row)) == (3.0, 0.75, None, 15.0)
    assert prices(effective(row, model="x-ai/grok-3")) == (1.0, 0.0, None, None)
    row = make_spec("x-ai/", input_cost_usd_per_mtok=2.0)
    assert prices(effective(row)) == (2.0, 0.0, None, 15.0)
    free = make_spec("x-ai/", input_cost_usd_per_mtok=0.0, output_cost_usd_per_mtok=0.0)
    assert prices(effective(free)) == (0.0, 0.0, None, 0.0)


def test_only_the_fallback_says_so() -> None:
    row = make_spec("x-ai/", uses_published_list=True)
    assert [field for field, _ in budget_problems(row)] == ["uses_published_list"]
    assert budget_problems(replace(row, key="")) == ()
    table = BudgetTable([make_spec(uses_published_list=True)], published=KNOWN)
    assert not table.row_to_edit("acme/new", project="1").uses_published_list
    assert table.row_to_edit("", project="1").uses_published_list


def test_no_server_is_asked_for_the_window_that_a_vendor_publishes() -> None:
    budget = effective()

    assert served_window(budget, None) is None
    assert served_window(budget, 131_072) == budget.input_tokens + budget.output_tokens
    told = replace(budget, limit_source=LimitSource.SERVER)
    assert served_window(told, None) == 256_000


@pytest.mark.parametrize("purpose", ["embedding", "rerank", "chat"])
def test_many_texts_in_one_request_are_not_held_against_the_window_of_each(purpose: str) -> None:
    level = judge_health(300_000, effective(), is_success=False, purpose=purpose).health.level

    assert level is (Level.CRITICAL if purpose == "chat" else Level.UNKNOWN)
