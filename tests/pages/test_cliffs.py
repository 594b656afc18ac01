"""Fresh starts in the fill curve: where they stand, what they say, and the round without a call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from helmdash.pages.charts import Curve, curve
from helmdash.queries.conversations import CurvePoint, RoundView
from tests.pages.test_words import NOW, make_point

GENERATIONS_OF_A_ROUND = 3


def make_round(number: int, opened_by: str = "clear") -> RoundView:
    first = (number - 1) * GENERATIONS_OF_A_ROUND + 1
    return RoundView(
        number=number,
        first_generation=first,
        latest_generation=first + GENERATIONS_OF_A_ROUND - 1,
        peak_prompt_tokens=None,
        started_at=NOW,
        ended_at=None,
        opened_by=opened_by if number > 1 else "",
    )


def points(rounds: int) -> list[CurvePoint]:
    """Rounds of three generations, each going up from 10,000 tokens."""
    return [
        make_point(
            (number - 1) * GENERATIONS_OF_A_ROUND + step,
            10_000 * step,
            round_number=number,
        )
        for number in range(1, rounds + 1)
        for step in range(1, GENERATIONS_OF_A_ROUND + 1)
    ]


def draw(shown: Sequence[CurvePoint], rounds: Sequence[RoundView], **over: object) -> Curve:
    return curve(shown, **{"width": 940, "height": 270, "rounds": rounds, **over})  # type: ignore[arg-type]


def test_a_clear_is_a_cliff_with_its_name_and_figures() -> None:
    chart = draw(points(2), [make_round(1), make_round(2)])

    (cliff,) = chart.cliffs
    assert cliff.label == "clear, round 2"
    assert (
        cliff.text == "Round 2 begins with generation 4: 30,000 tokens before, 10,000 tokens after"
    )
    assert cliff.path
    assert cliff.is_clear
    # The curve itself does not run over the edge: each round is a stretch of its own.
    assert len(chart.segments) == 2


def test_a_compaction_of_the_client_is_told_apart_from_a_clear() -> None:
    (cliff,) = draw(points(2), [make_round(1), make_round(2, "compaction")]).cliffs

    assert cliff.label == "compaction, round 2"
    assert not cliff.is_clear


def test_a_round_without_a_call_stands_at_the_open_end() -> None:
    chart = draw(points(1), [make_round(1), make_round(2)])

    (cliff,) = chart.cliffs
    assert cliff.text == "Round 2 is open and has no call yet"
    assert cliff.open_at is not None
    assert cliff.at < cliff.open_at <= chart.right


@pytest.mark.parametrize("prompts", [(None, 9_000), (9_000, None)])
def test_no_cliff_is_drawn_to_or_from_an_unknown_prompt(
    prompts: tuple[int | None, int | None],
) -> None:
    shown = [make_point(1, prompts[0]), make_point(2, prompts[1], round_number=2)]

    (cliff,) = draw(shown, [make_round(1), make_round(2)]).cliffs

    assert cliff.path == ""
    assert "unknown" in cliff.text


def test_labels_that_would_overlap_are_left_out_but_not_their_signs() -> None:
    rounds = [make_round(number) for number in range(1, 41)]

    chart = draw(points(40), rounds)

    assert len(chart.cliffs) == 39
    places = [each.label_at for each in chart.cliffs if each.label and each.anchor == "start"]
    assert 3 <= len(places) < 20
    assert all(later - earlier >= 92 for earlier, later in pairwise(places))


def test_budget_and_window_are_lines_of_their_own() -> None:
    windows = {"budget": 24_000, "window": 64_000}

    chart = draw(points(1), [], windows=windows)

    drawn = {line.name: line.value for line in chart.lines}
    assert drawn["budget"] == 24_000
    assert drawn["window"] == 64_000


def test_a_window_far_above_is_told_in_words_instead() -> None:
    chart = draw(points(1), [], windows={"window": 1_000_000})

    assert ("window", 1_000_000) in chart.above
