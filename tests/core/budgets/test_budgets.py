"""Which row governs a model, and why: the rules, on small tables made for the case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable, MissingFallback
from helmdash.core.budgets.budgets import Alias, BudgetSpec, MatchRule, PromptVariant, Tier
from helmdash.core.budgets.lines import LineSource
from helmdash.core.budgets.windows import within_window
from tests.builders import FALLBACK, make_spec, make_table


def make_row(key: str, **over: object) -> BudgetSpec:
    return make_spec(
        key,
        **{
            "input_tokens": 100_000,
            "output_tokens": 4000,
            "max_catalog_bytes": 22_000,
            "tier": Tier.B,
            "allows_llm_filter": False,
            "wants_strict_json": True,
            **over,
        },
    )


@pytest.mark.parametrize(
    ("model", "key", "rule"),
    [
        ("ollama/llama3", "ollama/llama3:latest", "exact"),
        (" Ollama/Llama3 ", "ollama/llama3:latest", "exact"),
        ("ollama/llama3:latest", "ollama/llama3:latest", "exact"),
        ("ollama/llama3[32k]", "ollama/llama3:latest", "exact"),
        ("local/llama3", "ollama/llama3:latest", "alias"),
        ("ollama/llama3.2", "ollama/", "prefix"),  # other models begin alike
        ("ollama/llama3:70b", "ollama/", "prefix"),
        ("ollama/qwen", "ollama/qwen", "exact"),  # the id itself goes before it
        ("ollama/qwen:latest", "ollama/qwen:latest", "exact"),
        ("ollama/phi:latest", "ollama/phi", "prefix"),
    ],
)
def test_a_name_without_a_tag_is_the_latest_as_ollama_has_it(
    model: str, key: str, rule: str
) -> None:
    keys = ("ollama/", "ollama/llama3:latest", "ollama/qwen", "ollama/qwen:latest", "ollama/phi")
    rows = [make_row(key) for key in keys]
    table = make_table(*rows, aliases=[Alias(prefix="local/", target="ollama/")])

    resolution = table.resolve(model)

    assert (resolution.matched_key, resolution.rule) == (key, rule)
    assert [each.key for each in resolution.candidates if each.won] == [key]
    assert table.row_of(model).key == table.key_to_edit(model) == key


@pytest.mark.parametrize(
    ("model", "key", "rule"),
    [
        ("a/b", "a/b", "exact"),
        ("a/b-large", "a/b-large", "exact"),  # exact goes before prefix
        ("a/b-largest", "a/b-large", "prefix"),  # the longest prefix
        ("a/b-small", "a/b", "prefix"),
        ("a/", "a/", "exact"),
        ("a/c", "a/", "prefix"),
        ("b/c", "", "fallback"),
        ("xa/b", "", "fallback"),  # a key starts the id, it is not merely in it
        ("", "", "fallback"),
        ("   ", "", "fallback"),
        ("  a/b  ", "a/b", "exact"),
        ("A/B", "a/b", "exact"),
        ("A/b-LARGE-x", "a/b-large", "prefix"),
    ],
)
def test_lookup_order(model: str, key: str, rule: str) -> None:
    table = make_table(make_row("a/"), make_row("a/b"), make_row("a/b-large"))

    resolution = table.resolve(model)

    assert (resolution.matched_key, resolution.rule) == (key, rule)
    assert resolution.model == model.strip()
    assert resolution.budget == table.lookup(model)
    assert resolution.budget.key == key


def test_keys_compare_without_case_too() -> None:
    assert make_table(make_row("  A/B  ")).resolve("a/b").rule is MatchRule.EXACT


def test_the_model_keeps_its_own_spelling() -> None:
    assert make_table(make_row("a/b")).lookup(" A/B-Chat ").model == "A/B-Chat"


@pytest.mark.parametrize(
    ("model", "key", "rule"),
    [
        ("g/pro", "google/pro", "alias"),
        ("g/pro-002", "google/pro", "alias"),
        ("G/PRO", "google/pro", "alias"),
        ("g/special", "special/model", "alias"),  # the longest alias prefix
        ("g/own", "g/own", "exact"),  # a row of its own matches, so no alias applies
        ("g/own-2", "g/own", "prefix"),
        ("g/nothing", "", "fallback"),  # an alias that leads to no row is none
        ("double/pro", "", "fallback"),  # aliases are not chained
    ],
)
def test_aliases(model: str, key: str, rule: str) -> None:
    table = make_table(
        make_row("google/pro"),
        make_row("special/model"),
        make_row("g/own"),
        aliases=(
            Alias(prefix="g/", target="google/"),
            Alias(prefix="g/special", target="special/model"),
            Alias(prefix="g/nothing", target="nowhere/"),
            Alias(prefix="double/", target="g/"),
            Alias(prefix=" ", target="google/pro"),  # blank: would swallow every id
        ),
    )

    resolution = table.resolve(model)

    assert (resolution.matched_key, resolution.rule) == (key, rule)


def test_a_free_route_is_lowered_to_tier_c() -> None:
    row = make_row("v/m", context_length=131_072, supports_prefix_cache=True, budget_id=7)

    resolution = make_table(row).resolve("v/m-instruct:free")

    budget = resolution.budget
    assert resolution.rule is budget.rule is MatchRule.FREE_SUFFIX
    assert (resolution.matched_key, resolution.budget_id) == ("v/m", 7)
    assert budget.tier is Tier.C
    assert budget.max_catalog_bytes == 10_000
    assert budget.allows_llm_filter
    assert not budget.wants_strict_json
    assert (budget.input_tokens, budget.output_tokens) == (16_000, 1500)
    assert budget.prompt_variant is PromptVariant.SINGLE_PICK
    assert budget.supports_prefix_cache
    assert budget.limit_tokens == 131_072


def test_a_free_route_keeps_figures_that_are_smaller_already() -> None:
    row = make_row("v/m", input_tokens=8000, output_tokens=500)

    budget = make_table(row).lookup("v/m:FREE")

    assert (budget.input_tokens, budget.output_tokens) == (8000, 500)
    assert (budget.limit_tokens, budget.limit_source) == (8000, "budget")


def test_a_row_written_for_free_routes_stands() -> None:
    row = make_row("v/m:free")

    resolution = make_table(row, make_row("v/m")).resolve("v/m:free")

    assert resolution.rule is MatchRule.EXACT
    assert resolution.budget.tier is Tier.B


def test_a_free_route_found_through_an_alias_is_lowered_too() -> None:
    table = make_table(make_row("long/v/m"), aliases=(Alias(prefix="v/", target="long/v/"),))

    resolution = table.resolve("v/m:free")

    assert (resolution.matched_key, resolution.rule) == ("long/v/m", "free_suffix")
    assert resolution.budget.tier is Tier.C


def test_an_unknown_free_route_is_the_fallback() -> None:
    assert make_table().resolve("never/seen:free").rule is MatchRule.FALLBACK


def test_free_elsewhere_in_an_id_means_nothing() -> None:
    assert make_table(make_row("v/")).resolve("v/:free-range").rule is MatchRule.PREFIX


def test_a_disabled_row_governs_nothing_and_is_explained() -> None:
    table = make_table(make_row("a/b", enabled=False), make_row("a/"))

    resolution = table.resolve("a/b")

    assert resolution.matched_key == "a/"
    disabled = next(c for c in resolution.candidates if c.key == "a/b")
    assert not disabled.won
    assert "disabled" in disabled.why


@pytest.mark.parametrize("project_first", [True, False])
def test_a_projects_row_beats_the_global_one_with_the_same_key(project_first: bool) -> None:
    rows = [make_row("a/b", budget_id=1), make_row("A/b", budget_id=2, project="p")]

    resolution = make_table(*(reversed(rows) if project_first else rows)).resolve("a/b-x")

    assert resolution.budget_id == 2
    assert [c.won for c in resolution.candidates].count(True) == 1


def test_a_longer_global_row_beats_a_projects_shorter_one() -> None:
    table = make_table(make_row("a/", project="p"), make_row("a/b"))

    assert table.resolve("a/b").matched_key == "a/b"


def test_a_disabled_project_row_leaves_the_global_one_in_force() -> None:
    table = make_table(
        make_row("a/b", budget_id=1), make_row("a/b", budget_id=2, project="p", enabled=False)
    )

    assert table.resolve("a/b").budget_id == 1


def test_a_projects_fallback_beats_the_global_one() -> None:
    own = replace(FALLBACK, project="p", input_tokens=4000)

    assert make_table(own).lookup("x").input_tokens == 4000


@pytest.mark.parametrize("rows", [[], [make_row("a/")], [replace(FALLBACK, enabled=False)]])
def test_a_table_without_fallback_is_refused(rows: list[BudgetSpec]) -> None:
    with pytest.raises(MissingFallback):
        BudgetTable(rows)


@pytest.mark.parametrize(
    ("tier", "override", "variant"),
    [
        (Tier.A, None, "full_steps"),
        (Tier.B, None, "full_steps"),
        (Tier.C, None, "single_pick"),
        (Tier.A, PromptVariant.SINGLE_PICK, "single_pick"),
        (Tier.C, PromptVariant.FULL_STEPS, "full_steps"),
    ],
)
def test_prompt_variant_by_override_else_by_tier(
    tier: Tier, override: PromptVariant | None, variant: str
) -> None:
    table = make_table(make_row("m", tier=tier, prompt_variant=override))

    assert table.lookup("m").prompt_variant == variant


@pytest.mark.parametrize(
    ("context", "longest_input", "limit", "source", "optimal", "critical"),
    [
        (200_000, None, 200_000, "context_length", 100_000, 180_000),
        (None, 128_000, 128_000, "input_length", 100_000, 115_200),
        (400_000, 272_000, 272_000, "input_length", 100_000, 244_800),  # the smaller known
        (127_999, None, 127_999, "context_length", 89_599, 115_199),
        (100, 200, 100, "context_length", 70, 90),
        (None, None, 100_000, "budget", 70_000, 90_000),  # the row's own safe ceiling
        (0, None, 100_000, "budget", 70_000, 90_000),  # 0 is no length
        (1, None, 1, "context_length", 1, 1),  # never 0
        (111, None, 111, "context_length", 77, 99),  # rounded down
    ],
)
def test_limit_and_default_lines(
    context: int | None,
    longest_input: int | None,
    limit: int,
    source: str,
    optimal: int,
    critical: int,
) -> None:
    row = make_row("m", context_length=context, input_length=longest_input)

    budget = make_table(row).lookup("m")

    assert (budget.limit_tokens, budget.limit_source) == (limit, source)
    assert budget.critical_max_tokens == critical
    assert (budget.optimal_max_tokens, budget.caution_cadence) == (optimal, 10)


def test_configured_lines_are_kept() -> None:
    row = make_row("m", optimal_max_tokens=50, critical_max_tokens=60, caution_cadence=3)

    budget = make_table(row).lookup("m")

    assert (budget.optimal_max_tokens, budget.critical_max_tokens) == (50, 60)
    assert budget.caution_cadence == 3
    assert budget.optimal_source is budget.critical_source is LineSource.BUDGET


@given(
    limit=st.integers(4, 3_000_000),
    critical=st.none() | st.integers(3, 3_000_000),
    window=st.integers(4, 3_000_000),
)
@settings(max_examples=200, deadline=None)
def test_default_lines_always_leave_a_caution(
    limit: int, critical: int | None, window: int
) -> None:
    critical = None if critical is None else min(critical, limit)
    row = make_row("m", context_length=limit, critical_max_tokens=critical)
    budget = make_table(row).lookup("m")

    for held in (budget, within_window(budget, window)):
        assert held.critical_max_tokens is not None
        assert held.limit_tokens is not None
        assert held.optimal_max_tokens < held.critical_max_tokens <= held.limit_tokens
    assert budget_problems(row) == ()


@pytest.mark.parametrize("model", ["acme/new[1m]", " acme/new [200k] ", "acme/new"])
def test_an_edit_for_a_model_rules_it_whatever_window_its_suffix_names(model: str) -> None:
    table = make_table(make_row("a/b"))

    base = table.row_to_edit(table.key_to_edit(model), project="1")
    row = replace(base, reserve_tokens=base.reserve_tokens + 1)

    assert row.key == "acme/new"
    assert budget_problems(row) == ()
    assert table.with_row(row).row_of(model) == row


@pytest.mark.parametrize(
    ("own", "window", "lines"),
    [
        # The defaults follow the window.
        ({}, 40_000, (28_000, "share_of_limit", 36_000, "share_of_limit")),
        # A row's own lines hold as far as they fit in.
        ({"optimal_max_tokens": 9_000}, 40_000, (9_000, "budget", 36_000, "share_of_limit")),
        (
            {"optimal_max_tokens": 90_000},
            40_000,
            (28_000, "share_of_limit", 36_000, "share_of_limit"),
        ),
        ({"critical_max_tokens": 9_000}, 40_000, (7_000, "share_of_critical", 9_000, "budget")),
        (
            {"critical_max_tokens": 99_000},
            40_000,
            (28_000, "share_of_limit", 36_000, "share_of_limit"),
        ),
        ({}, 500_000, (100_000, "default", 180_000, "share_of_limit")),
    ],
)
def test_lines_within_a_smaller_window(
    own: dict[str, Any], window: int, lines: tuple[object, ...]
) -> None:
    budget = make_table(make_row("m", context_length=200_000, **own)).lookup("m")

    held = within_window(budget, window)

    assert lines == (
        held.optimal_max_tokens,
        held.optimal_source,
        held.critical_max_tokens,
        held.critical_source,
    )


def test_under_the_fallback_the_limit_is_unknown_even_with_a_length() -> None:
    table = BudgetTable([replace(FALLBACK, context_length=32_768)])

    budget = table.lookup("x")

    assert (budget.limit_tokens, budget.limit_source) == (None, None)
    assert budget.critical_max_tokens is None


def test_a_budget_brings_its_own_estimator() -> None:
    budget = make_table(make_row("m", chars_per_token=2.0, safety_multiplier=1.5)).lookup("m")

    assert budget.estimator.tokens_of_bytes(100) == 75


def test_the_explanation_names_every_rule_that_was_considered() -> None:
    table = make_table(
        make_row("long/v/m"),
        make_row("long/"),
        aliases=(Alias(prefix="v/", target="long/v/"), Alias(prefix="v", target="elsewhere/")),
    )

    resolution = table.resolve("v/m:free")

    assert [(c.key, c.rule, c.won) for c in resolution.candidates] == [
        ("long/v/m", "alias", False),
        ("elsewhere/", "alias", False),
        ("long/v/m", "free_suffix", True),
        ("", "fallback", False),
    ]
    assert all(c.why.endswith(".") for c in resolution.candidates)


def test_the_explanation_lists_shorter_prefixes_behind_the_winner() -> None:
    table = make_table(make_row("a/"), make_row("a/b"), aliases=(Alias(prefix="a", target="b"),))

    candidates = table.resolve("a/b-c").candidates

    assert [(c.key, c.rule, c.won) for c in candidates] == [
        ("a/b", "prefix", True),
        ("a/", "prefix", False),
        ("b", "alias", False),
        ("", "fallback", False),
    ]
    assert "a/b" in candidates[1].why


def test_two_rows_alike_are_told_apart() -> None:
    table = make_table(make_row("a/b", budget_id=1), make_row("a/b", budget_id=2))

    resolution = table.resolve("a/b")

    assert resolution.budget_id == 1
    assert [c.won for c in resolution.candidates] == [True, False, False]
    assert "same key" in resolution.candidates[1].why


def test_answers_are_remembered_within_bounds() -> None:
    table = make_table(make_row("a/"))

    assert table.lookup("a/b") is table.lookup("a/b")
    for n in range(5000):
        table.lookup(f"a/{n}")
    assert table.lookup("a/b").key == "a/"


IDS = st.text(alphabet="ab/:fre", max_size=10)


@given(
    keys=st.lists(IDS.filter(bool), max_size=6, unique=True),
    aliases=st.lists(st.tuples(IDS, IDS), max_size=3),
    disabled=st.sets(st.integers(0, 5)),
    model=IDS | IDS.map(lambda text: text + ":free"),
)
@settings(max_examples=150, deadline=None)
def test_exactly_one_candidate_wins_and_lookup_agrees(
    keys: list[str], aliases: list[tuple[str, str]], disabled: set[int], model: str
) -> None:
    rows = [make_row(key, enabled=n not in disabled) for n, key in enumerate(keys)]
    table = make_table(*rows, aliases=tuple(Alias(prefix=p, target=t) for p, t in aliases))

    resolution = table.resolve(model)

    winners = [c for c in resolution.candidates if c.won]
    assert [(c.key, c.rule) for c in winners] == [(resolution.matched_key, resolution.rule)]
    assert resolution.budget == table.lookup(model)
