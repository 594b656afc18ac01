"""Fresh starts in the fill curve: where they stand, what they say, and the round without a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from helmdash.core.budgets.health import HealthReason
from helmdash.pages.parts.charts import curve_points
from helmdash.pages.parts.charts.charts import Curve, curve
from helmdash.pages.parts.charts.clear_markers import ClearMarker
from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CurvePoint
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


def test_a_clear_is_a_marker_with_its_name_and_figures() -> None:
    chart = draw(points(2), [make_round(1), make_round(2)])

    (marker,) = chart.clear_markers
    assert marker.label == "clear, round 2"
    assert (
        marker.text == "Round 2 begins with generation 4: 30,000 tokens before, 10,000 tokens after"
    )
    assert marker.path
    assert marker.is_clear
    # The curve itself does not run over the edge: each round is a stretch of its own.
    assert len(chart.segments) == 2


def test_a_compaction_of_the_client_is_told_apart_from_a_clear() -> None:
    (marker,) = draw(points(2), [make_round(1), make_round(2, "client_compaction")]).clear_markers

    assert marker.label == "compaction, round 2"
    assert not marker.is_clear


def test_a_round_without_a_call_stands_at_the_open_end() -> None:
    chart = draw(points(1), [make_round(1), make_round(2)])

    (marker,) = chart.clear_markers
    assert marker.text == "Round 2 is open and has no call yet"
    assert marker.open_at is not None
    assert marker.at < marker.open_at <= chart.right


@pytest.mark.parametrize("prompts", [(None, 9_000), (9_000, None)])
def test_no_marker_is_drawn_to_or_from_an_unknown_prompt(
    prompts: tuple[int | None, int | None],
) -> None:
    shown = [make_point(1, prompts[0]), make_point(2, prompts[1], round_number=2)]

    (marker,) = draw(shown, [make_round(1), make_round(2)]).clear_markers

    assert marker.path == ""
    assert "unknown" in marker.text


# how many rounds, the width of the curve; the label of the second round and of the last
LABELS = [
    (3, 940, "clear, round 2", "clear, round 3"),
    # the narrow curve has room for one name, not for six
    (2, 380, "clear, round 2", "clear, round 2"),
    (7, 380, "2", "7"),
    (40, 940, "2", "40"),
    (100, 380, "", ""),
]


@pytest.mark.parametrize(("rounds", "width", "first", "last"), LABELS)
def test_labels_are_as_long_as_the_room_between_the_lines_allows(
    rounds: int, width: int, first: str, last: str
) -> None:
    numbers = [make_round(number) for number in range(1, rounds + 1)]

    chart = draw(points(rounds), numbers, width=width)

    # The sign stays, whatever becomes of the label.
    assert len(chart.clear_markers) == rounds - 1
    assert (chart.clear_markers[0].label, chart.clear_markers[-1].label) == (first, last)
    spans = [span(each) for each in chart.clear_markers if each.label]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    for begin, end in spans:
        assert not any(begin < each.at < end for each in chart.clear_markers)


def span(marker: ClearMarker) -> tuple[float, float]:
    """From where to where its label goes."""
    width = 6.0 * len(marker.label)
    begin = marker.label_at - (width if marker.anchor == "end" else 0)
    return begin, begin + width


def test_budget_and_window_are_lines_of_their_own() -> None:
    windows = {"budget": 24_000, "window": 64_000}

    chart = draw(points(1), [], windows=windows)

    drawn = {line.name: line.value for line in chart.lines}
    assert drawn["budget"] == 24_000
    assert drawn["window"] == 64_000


def test_a_window_far_above_is_told_in_words_instead() -> None:
    chart = draw(points(1), [], windows={"window": 1_000_000})

    assert ("window", 1_000_000) in chart.above


def test_a_prompt_that_was_probably_cut_stands_alone_and_says_so() -> None:
    cut = replace(make_point(2, 2_050), reason=HealthReason.SUSPECTED_CUT)
    shown = [make_point(1, 9_000), cut, make_point(3, 9_500)]

    chart = draw(shown, [make_round(1)])

    assert len(chart.segments) == 2
    assert chart.has_untrusted
    assert curve_points.encoded(shown).split()[1] == "2050/0?"


def test_a_caution_line_above_the_critical_one_is_no_line() -> None:
    small = replace(
        make_point(1, 1_000),
        optimal_max_tokens=100_000,
        critical_max_tokens=2_764,
        limit_tokens=3_072,
    )

    chart = draw([small], [])

    assert "caution" not in {line.name for line in chart.lines}
    assert chart.above == ()
