"""What a trial shows: rates of calls, errors of conversations, and when harm is clear."""

from __future__ import annotations

import math
from random import Random

import pytest

from helmdash.core.evidence.trialling import (
    LEAST_CONVERSATIONS,
    ArmFigures,
    difference,
    is_clearly_worse,
)
from tests.support import trial_fleets


def _arm(*conversations: tuple[int, int]) -> ArmFigures:
    """Of (calls, clean ones) of each conversation."""
    return ArmFigures(
        conversations=len(conversations),
        calls=sum(n for n, _ in conversations),
        clean=sum(c for _, c in conversations),
        calls_squared=sum(n * n for n, _ in conversations),
        clean_squared=sum(c * c for _, c in conversations),
        product=sum(n * c for n, c in conversations),
    )


def test_an_error_is_by_conversations_and_not_by_calls() -> None:
    """200 of 400 calls are clean: by halves in every conversation, or whole conversations are."""
    mixed, apart = _arm(*[(10, 5)] * 40), _arm(*[(10, 10), (10, 0)] * 20)

    assert mixed.rate == apart.rate == 0.5
    # As of 40 coins that are thrown, and two more.
    assert apart.variance == pytest.approx(0.25 / 41, rel=0.03)
    assert mixed.variance < apart.variance / 15
    low, high = apart.interval or (0, 0)
    assert (low, high) == pytest.approx((0.35, 0.65), abs=0.01)


def test_where_all_went_well_the_next_may_not() -> None:
    arm = _arm(*[(5, 5)] * 30)

    low, high = arm.interval or (0, 0)
    assert 0.8 < low < 0.95
    assert high == 1
    assert _arm().interval is None
    assert _arm().rate is None
    assert math.isinf(_arm().variance)
    assert difference(arm, _arm()) is None


@pytest.mark.parametrize(
    ("today", "suggested", "is_worse"),
    [
        ([(5, 5)] * 100, [(5, 2)] * 30, True),
        ([(5, 5)] * 100, [(5, 2)] * (LEAST_CONVERSATIONS - 1), False),
        ([(5, 5)] * 100, [(5, 5)] * 30, False),
        ([(5, 2)] * 100, [(5, 5)] * 30, False),  # better
        ([(5, 5)] * 100, [(5, 5)] * 28 + [(5, 2)] * 2, False),
        ([(1000, 1000)] * 5000, [(1000, 985)] * 5000, False),  # sure, and too little
        ([(1000, 1000)] * 5000, [(1000, 970)] * 5000, True),
    ],
)
def test_harm_is_clear(
    today: list[tuple[int, int]], suggested: list[tuple[int, int]], is_worse: bool
) -> None:
    assert is_clearly_worse(_arm(*today), _arm(*suggested)) is is_worse


def test_on_simulated_trials_harm_is_seen_and_chance_is_not() -> None:
    """A few of those that `make bench ARGS=evidence` carries out."""
    stopped = {
        harm: sum(
            trial_fleets.run(random, trial_fleets.fleet(random, harm=harm)).is_stopped
            for random in (Random(f"test-{harm}-{number}") for number in range(40))
        )
        for harm in (0.0, 0.3)
    }

    assert stopped[0.0] == 0
    assert stopped[0.3] >= 36
