"""Whose word on a window counts: operator, refusal, server, shipped row, client."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetSpec
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.learned_windows import (
    ClaimState,
    LimitSource,
    RowLimit,
    Variant,
    WindowBy,
    WindowReport,
    WindowSource,
    choose_limit,
)
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.shipped import load_shipped, load_variants
from tests.builders import make_spec
from tests.support import ROOT

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TEXT = (ROOT / "fixtures" / "budgets.toml").read_text()
# In the order in which they count, each with a window of its own.
WORDS = ["operator", "refusal", "server", "shipped", "client"]
TOKENS = dict(zip(WORDS, (10_000, 20_000, 30_000, 40_000, 50_000), strict=True))
SOURCES = {
    "operator": LimitSource.CONTEXT_LENGTH,
    "refusal": LimitSource.REFUSAL,
    "server": LimitSource.SERVER,
    "shipped": LimitSource.CONTEXT_LENGTH,
    "client": LimitSource.CLIENT,
}


def told(source: WindowSource, tokens: int, *, days: int = 0) -> WindowReport:
    return WindowReport(
        key="m", source=source, tokens=tokens, seen_at=NOW + timedelta(days=days), call_id="c"
    )


def chosen(words: tuple[str, ...], *, proof: WindowReport | None = None):  # type: ignore[no-untyped-def]
    learned = {
        source: told(source, TOKENS[source.value])
        for source in (WindowSource.REFUSAL, WindowSource.SERVER)
        if source.value in words
    }
    if proof is not None:
        learned[WindowSource.SUCCESS] = proof
    row = next((word for word in words if word in ("operator", "shipped")), None)
    return choose_limit(
        RowLimit(
            tokens=TOKENS[row],
            source=LimitSource.CONTEXT_LENGTH,
            is_operators=row == "operator",
        )
        if row
        else None,
        learned,
        client_window=TOKENS["client"] if "client" in words else None,
    )


@pytest.mark.parametrize(
    "words",
    [
        words
        for count in range(1, 5)
        for words in combinations(WORDS, count)
        if not {"operator", "shipped"} <= set(words)  # one row governs
    ],
)
def test_the_first_in_the_order_counts(words: tuple[str, ...]) -> None:
    limit = chosen(words)

    assert (limit.tokens, limit.source) == (TOKENS[words[0]], SOURCES[words[0]])
    assert [claim.tokens for claim in limit.claims] == [TOKENS[word] for word in words]
    assert [claim.state for claim in limit.claims] == [
        ClaimState.USED,
        *[ClaimState.OUTRANKED] * (len(words) - 1),
    ]
    assert limit.disproved_by is None


def test_nobody_knows_one() -> None:
    assert chosen(()).tokens is None


@pytest.mark.parametrize(
    ("proved", "tokens", "source"),
    [
        (22_000, 20_000, LimitSource.REFUSAL),  # 10 % above: a count may differ
        (22_001, 30_000, LimitSource.SERVER),
        (33_001, 40_000, LimitSource.CONTEXT_LENGTH),
        (44_001, 50_000, LimitSource.CLIENT),
        (55_001, None, None),
    ],
)
def test_a_disproved_word_is_passed_over(
    proved: int, tokens: int | None, source: LimitSource | None
) -> None:
    proof = told(WindowSource.SUCCESS, proved, days=1)
    limit = chosen(("refusal", "server", "shipped", "client"), proof=proof)

    assert (limit.tokens, limit.source) == (tokens, source)
    assert limit.disproved_by == (proof if proved > 22_000 else None)


def test_an_operators_number_holds_and_is_said_to_be_disproved() -> None:
    proof = told(WindowSource.SUCCESS, 90_000, days=1)
    limit = chosen(("operator", "server"), proof=proof)

    assert (limit.tokens, limit.disproved_by) == (10_000, proof)
    assert limit.claims[0].state is ClaimState.USED_ALTHOUGH_DISPROVED
    assert limit.claims[1].state is ClaimState.DISPROVED


def test_a_word_given_after_the_proof_stands() -> None:
    before = told(WindowSource.SUCCESS, 90_000, days=-1)

    assert chosen(("refusal",), proof=before).tokens == 20_000
    assert chosen(("shipped",), proof=before).tokens is None  # a row has no time


def test_a_client_lifts_a_shipped_row_only_as_far_as_its_provider_documents() -> None:
    row = RowLimit(tokens=200_000, source=LimitSource.CONTEXT_LENGTH, is_operators=False)
    variant = Variant(prefix="m", context_length=1_000_000)

    def limit(
        client: int | None, *, variant: Variant | None, row: RowLimit = row
    ) -> tuple[int | None, LimitSource | None]:
        found = choose_limit(row, {}, client_window=client, variant=variant)
        return found.tokens, found.source

    assert limit(1_000_000, variant=variant) == (1_000_000, LimitSource.CLIENT)
    assert limit(2_000_000, variant=variant) == (1_000_000, LimitSource.CLIENT)
    assert limit(500_000, variant=variant) == (500_000, LimitSource.CLIENT)
    assert limit(100_000, variant=variant) == (200_000, LimitSource.CONTEXT_LENGTH)
    assert limit(None, variant=variant) == (200_000, LimitSource.CONTEXT_LENGTH)
    assert limit(1_000_000, variant=None) == (200_000, LimitSource.CONTEXT_LENGTH)
    own = limit(1_000_000, variant=variant, row=replace(row, is_operators=True))
    assert own == (200_000, LimitSource.CONTEXT_LENGTH)


def shipped_table(*own: BudgetSpec, windows: tuple[WindowReport, ...] = ()) -> BudgetTable:
    rows, aliases = load_shipped(TEXT)
    numbered = [
        replace(row, budget_id=number, window_by=WindowBy.SHIPPED)
        for number, row in enumerate(rows, 1)
    ]
    return BudgetTable(
        [*own, *numbered],
        aliases,
        windows=windows,
        variants=load_variants(TEXT),
    )


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-4-5[1m]", "anthropic/claude-opus-4-8[1m]", "anthropic.claude-sonnet-4-v1[1M]",
     "openrouter/anthropic/claude-sonnet-4.5[1m]"],
)  # fmt: skip
def test_a_session_of_a_client_that_asked_for_a_million_is_not_red_at_240_000(model: str) -> None:
    table = shipped_table()
    budget = table.lookup(model)

    assert (budget.limit_tokens, budget.limit_source) == (1_000_000, LimitSource.CLIENT)
    assert assess(240_000, budget).level is Level.CAUTION
    bare = model[:-4]
    assert table.lookup(bare, client_window=1_000_000).limit_tokens == 1_000_000
    assert assess(190_000, table.lookup(bare)).level is Level.CRITICAL


def test_what_an_operator_a_refusal_or_the_server_says_comes_before_a_suffix() -> None:
    own = make_spec(
        "anthropic/claude-sonnet-4-5", input_tokens=100_000, context_length=200_000, budget_id=9999
    )
    model = "claude-sonnet-4-5[1m]"

    assert shipped_table(own).lookup(model).limit_tokens == 200_000
    for source in (WindowSource.REFUSAL, WindowSource.SERVER):
        window = replace(told(source, 150_000), key="anthropic/claude-sonnet-4-5")
        budget = shipped_table(windows=(window,)).lookup(model)
        assert (budget.limit_tokens, budget.limit_source) == (150_000, source.value)


def test_lines_follow_the_window_that_counts() -> None:
    window = replace(told(WindowSource.SERVER, 8192), key="ollama/llama3")
    table = shipped_table(windows=(window,))

    for model in ("ollama/llama3", "ollama/llama3:latest", "ollama_chat/Llama3", "llama3"):
        budget = table.lookup(model)
        assert (budget.limit_tokens, budget.limit_source) == (8192, LimitSource.SERVER), model
        assert (budget.optimal_max_tokens, budget.critical_max_tokens) == (5734, 7372), model
    assert table.lookup("ollama/other").limit_source is LimitSource.BUDGET


def test_the_server_of_now_comes_before_what_it_said_once() -> None:
    window = replace(told(WindowSource.SERVER, 8192), key="ollama/llama3")
    table = shipped_table(windows=(window,))

    assert table.lookup("ollama/llama3", server_window=16_384).limit_tokens == 16_384
