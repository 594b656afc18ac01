"""Trials: which budget a conversation has, and that it keeps it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import PromptVariant, Tier
from helmdash.core.budgets.learned_windows import LimitSource, WindowBy
from helmdash.core.budgets.trials import Arm, TrialRule, TriedCall, read_told, told, unit_of
from tests.builders import make_spec
from tests.factories import NOW

_MODEL = "openai/gpt-4o"


def _rule(**over: Any) -> TrialRule:
    given: dict[str, Any] = {
        "id": 7,
        "model_key": _MODEL,
        "changes": {"input_tokens": 24_575},
        "share": 0.2,
        "since": NOW,
    }
    return TrialRule(**{**given, **over})


def _table(*rules: TrialRule) -> BudgetTable:
    rows = [make_spec(input_tokens=8_000), make_spec("openai/", input_tokens=100_000)]
    return BudgetTable(rows).with_trials(rules)


_IN, _OUT = "talk-1", "talk-0"
"""Two conversations, one of either arm of trial 7 with a share of a fifth."""


def test_each_conversation_keeps_its_arm_and_the_share_holds() -> None:
    rule = _rule()
    arms = [rule.arm_of(f"talk-{number}") for number in range(20_000)]

    assert abs(arms.count(Arm.SUGGESTED) / len(arms) - 0.2) < 0.01
    assert arms == [rule.arm_of(f"talk-{number}") for number in range(20_000)]
    # Of two trials the arms have nothing to do with each other.
    both = [
        _rule(id=8).arm_of(f"talk-{number}") is Arm.SUGGESTED and arm is Arm.SUGGESTED
        for number, arm in enumerate(arms)
    ]
    assert abs(sum(both) / len(arms) - 0.04) < 0.01
    # Who has a larger share keeps whom he had.
    assert all(
        _rule(share=0.5).arm_of(f"talk-{n}") is arm
        for n, arm in enumerate(arms)
        if arm is Arm.SUGGESTED
    )


def test_a_conversation_has_one_budget_by_any_spelling() -> None:
    table = _table(_rule())

    for name, input_tokens in ((_IN, 24_575), (_OUT, 100_000)):
        rules = table.for_conversation(name)
        found = {rules.lookup(each).input_tokens for each in (_MODEL, "OpenAI/GPT-4o ")}
        assert found == {input_tokens}
        assert rules.lookup(_MODEL).trial is not None
        assert rules.for_conversation(_OUT) is rules  # once is enough
        assert rules.lookup("openai/gpt-5").trial is None
        assert rules.lookup("openai/gpt-5").input_tokens == 100_000


@pytest.mark.parametrize("name", ["", None])
def test_who_names_no_conversation_is_in_no_trial(name: str | None) -> None:
    table = _table(_rule(share=0.9))

    assert table.for_conversation(name) is table
    assert table.lookup(_MODEL).trial is None
    assert table.lookup(_MODEL).input_tokens == 100_000


def test_what_is_older_than_the_trial_is_not_in_it() -> None:
    table = _table(_rule())

    before = table.for_conversation(_IN, at=NOW - timedelta(seconds=1))
    since = table.for_conversation(_IN, at=NOW)

    assert (before.lookup(_MODEL).trial, before.lookup(_MODEL).input_tokens) == (None, 100_000)
    assert since.lookup(_MODEL).input_tokens == 24_575


def test_trials_of_two_models_do_not_mix() -> None:
    second = _rule(
        id=8, model_key="openai/gpt-5", changes={"tier": "A", "prompt_variant": "full_steps"}
    )
    table = _table(_rule(), second)
    seen = set()
    for number in range(60):
        rules = table.for_conversation(f"talk-{number}")
        first, other = rules.lookup(_MODEL), rules.lookup("openai/gpt-5")
        assert other.input_tokens == 100_000
        if other.tier is Tier.A:
            assert other.prompt_variant is PromptVariant.FULL_STEPS
        seen.add((first.input_tokens, other.tier is Tier.A))

    assert seen == {(24_575, True), (24_575, False), (100_000, True), (100_000, False)}


def test_a_window_on_trial_is_as_good_as_an_operators() -> None:
    shipped = make_spec(_MODEL, context_length=200_000, window_by=WindowBy.SHIPPED)
    table = BudgetTable([make_spec(input_tokens=8_000), shipped]).with_trials(
        [_rule(changes={"context_length": 60_000})]
    )

    tried = table.for_conversation(_IN).lookup(_MODEL, server_window=128_000)
    today = table.for_conversation(_OUT).lookup(_MODEL, server_window=128_000)

    assert (tried.limit_tokens, tried.limit_source) == (60_000, LimitSource.CONTEXT_LENGTH)
    assert (today.limit_tokens, today.limit_source) == (128_000, LimitSource.SERVER)


def test_what_a_capture_says_of_a_trial_is_read_back() -> None:
    ruled_by = _table(_rule()).for_conversation(_IN).lookup(_MODEL).trial

    assert read_told(told(ruled_by, _IN)) == TriedCall(7, Arm.SUGGESTED, unit_of(7, _IN))
    assert told(None, _IN) == ""
    for text in (
        "",
        "7",
        "7:suggested",
        "7:other:0123456789abcdef",
        "x:today:0123456789abcdef",
        "9" * 19 + ":today:0123456789abcdef",
    ):
        assert read_told(text) is None
