"""Windows, output tokens, estimators and ways of planning, learned from counts."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from helmdash.core.budgets.budgets import Tier
from helmdash.core.evidence.estimator import find_ratios
from helmdash.core.evidence.hard_window import find_plateau
from helmdash.core.evidence.output_tokens import find_output_need
from helmdash.core.evidence.planning_outcomes import find_better_way, find_tier
from helmdash.core.evidence.stratified import Cell
from helmdash.core.rollups.buckets import bucket_of
from helmdash.core.rollups.evidence_facts import ratio_of
from tests.support.fleet_figures import estimator_error, plateau_error


@pytest.mark.parametrize(
    ("cuts", "longest_whole", "tokens", "missing"),
    [
        ({4_096: 4}, None, None, 1),
        ({4_096: 9, 900: 2}, 3_500, 4_096, 0),
        ({24_000: 6}, None, 24_000, 0),
        # What llama.cpp keeps of 8,192: half of it, and a few tokens of the template.
        ({4_099: 7, 4_101: 3}, 4_000, 8_192, 0),
        ({8_080: 2, 8_100: 2, 8_120: 1}, 7_000, 8_192, 0),
        # A longer prompt was answered whole; counts all over the place.
        ({4_096: 9}, 5_000, None, 0),
        ({1_000 * each: 1 for each in range(1, 12)}, None, None, 0),
    ],
)
def test_a_plateau_is_a_window(
    cuts: dict[int, int], longest_whole: int | None, tokens: int | None, missing: int
) -> None:
    found = find_plateau(cuts, longest_whole=longest_whole)

    assert (found.tokens, found.missing) == (tokens, missing)


def test_windows_and_estimators_are_as_near_as_promised() -> None:
    seeds = [Random(f"test-{number}") for number in range(100)]

    assert sum(plateau_error(each) <= 0.02 for each in seeds) >= 95
    assert median(estimator_error(each) for each in seeds[:40]) <= 0.05


@pytest.mark.parametrize(
    ("ended", "cut_off", "tokens", "missing"),
    [
        ({500: 40}, {1_000: 3}, None, 57),
        # Never cut off: nothing to say.
        ({500: 400}, {}, None, 0),
        ({500: 190, 900: 9, 1_500: 1}, {600: 4}, 1_024, 0),
        # Too many were cut off to know where the rest would have ended.
        ({500: 100}, {1_024: 30}, None, 0),
    ],
)
def test_replies_that_were_cut_off_needed_more(
    ended: dict[int, int], cut_off: dict[int, int], tokens: int | None, missing: int
) -> None:
    found = find_output_need(ended, cut_off)

    assert (found.tokens, found.missing) == (tokens, missing)


def test_bytes_per_token_and_a_margin_that_is_enough() -> None:
    counts = {bucket_of(3_000): 60, bucket_of(2_500): 30, bucket_of(4_000): 10}

    found = find_ratios(counts, today=4.0)

    assert found.bytes_per_token == pytest.approx(3.0, rel=0.01)
    assert found.margin == pytest.approx(1.2, rel=0.02)
    assert found.error == pytest.approx(0, abs=0.01)
    assert found.today_error == pytest.approx(0.25, abs=0.01)
    assert find_ratios({bucket_of(3_000): 49}, today=4.0).missing == 1
    assert ratio_of(300, 100) == 3_000
    assert ratio_of(300, 99) is ratio_of(None, 500) is ratio_of(300, None) is None


@pytest.mark.parametrize(
    ("counts", "is_told"),
    [
        ({1_000: 60}, True),  # a byte a token, as of Chinese in some tokenizers' fallback
        ({980: 60}, False),
        # A pack that tells the bytes of its newest message, or of a prompt without its tools.
        ({7: 60}, False),
        ({20: 30, 300: 30}, False),
        ({90_000: 60}, True),
        ({400_000: 60}, False),  # images by their bytes
        ({9_000: 40, 1_000: 20}, True),
        ({30_000: 40, 1_000: 20}, False),  # a margin of 30, which no budget holds
    ],
)
def test_sizes_that_cannot_be_of_the_prompt_teach_nothing(
    counts: dict[int, int], is_told: bool
) -> None:
    """They were rounded to what a budget can hold: 0.1 bytes a token, 74 % off at the median."""
    found = find_ratios({bucket_of(ratio): calls for ratio, calls in counts.items()}, today=4.0)

    assert (found.bytes_per_token is not None) is is_told
    assert (found.margin is not None) is is_told
    assert (found.calls, found.missing) == (60, 0)


@pytest.mark.parametrize(
    ("clean", "calls", "tier", "missing"),
    [
        (59, 59, None, 1),
        (200, 200, Tier.A, 0),
        (180, 200, Tier.B, 0),
        (120, 200, Tier.C, 0),
        # The interval reaches over two tiers.
        (58, 64, None, 0),
    ],
)
def test_a_tier_takes_an_interval_that_lies_in_it(
    clean: int, calls: int, tier: Tier | None, missing: int
) -> None:
    found = find_tier(clean=clean, calls=calls)

    assert (found.tier, found.missing) == (tier, missing)


def test_of_two_ways_the_better_is_told_within_like_calls() -> None:
    good = [Cell((), at, way, 4, 4 - 3 * way) for at in range(30) for way in (0, 1)]
    # One way was used while all went well, the other while nothing did.
    apart = [Cell((), at, int(at > 15), 8, 8 * (at <= 15)) for at in range(30)]

    assert find_better_way(good).better == 0
    assert find_better_way(apart).better is None
    assert find_better_way(good[:20]).missing == 0
    assert find_better_way(good[:4]).missing == 22
