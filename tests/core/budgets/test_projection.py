"""How soon a prompt passes its next line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from helmdash.core.budgets.levels import HasLines, Level
from helmdash.core.budgets.projection import Prompt, project

START = datetime(2026, 6, 5, 14, 0, tzinfo=UTC)


def lines(caution: int | None, critical: int | None) -> HasLines:
    return SimpleNamespace(optimal_max_tokens=caution, critical_max_tokens=critical)


# tokens by generation, a minute apart; caution 100, critical 200 -> next level, generations
GROWTHS: list[tuple[list[int], tuple[str, int] | None]] = [
    ([50, 60, 70], ("caution", 4)),  # 80, 90, 100 is on the line and not above it, 110
    ([50, 60, 75], ("caution", 3)),  # by 12.5 each
    ([10, 90, 100, 100], ("caution", 1)),  # on the line is not above it
    ([120, 130, 140], ("critical", 7)),
    ([180, 190, 200], ("critical", 1)),
    ([190, 200, 210], None),  # above the last line
    ([50, 60], None),  # too few to tell
    ([50, 50, 50], None),  # does not grow
    ([70, 10, 20], None),  # fell, and too few since
    ([90, 10, 20, 30], ("caution", 8)),
    ([1, 2, 3, 4, 10, 20, 30, 40, 50, 60, 70, 80], ("caution", 3)),  # the newest eight
    ([10, 11, 12, 13, 14, 60], ("caution", 41)),  # one large result is no slope
]


@pytest.mark.parametrize(("tokens", "expected"), GROWTHS)
def test_the_next_line_by_the_recent_slope(
    tokens: list[int], expected: tuple[str, int] | None
) -> None:
    prompts = [Prompt(n, START + timedelta(minutes=n), each) for n, each in enumerate(tokens)]

    found = project(prompts, lines(100, 200))

    assert (found and (found.level.value, found.generations)) == expected
    if found is not None:
        assert found.time == timedelta(minutes=found.generations)


@pytest.mark.parametrize(
    ("tokens", "expected"), [([10, 40, 70], 5), ([50, 100, 150], 2), ([190, 200, 210], None)]
)
def test_one_line_whichever_is_the_next(tokens: list[int], expected: int | None) -> None:
    prompts = [Prompt(n, START + timedelta(minutes=n), each) for n, each in enumerate(tokens)]

    found = project(prompts, lines(100, 200), to=Level.CRITICAL)

    assert (found and (found.line, found.generations)) == (expected and (200, expected))


def test_generations_that_told_nothing_count_for_the_pace_and_the_slope() -> None:
    prompts = [Prompt(n, START + timedelta(minutes=n), 10 * n) for n in (1, 3, 5)]

    found = project(prompts, lines(None, 75))

    assert found is not None
    assert (found.line, found.generations, found.time) == (75, 3, timedelta(minutes=3))


# between prompts, the line -> until it is reached
PACES: list[tuple[timedelta, int, timedelta]] = [
    (timedelta(days=7_000), 1_000_000, timedelta(days=36_500)),
    (timedelta(minutes=1), 2**53, timedelta(days=36_500)),
    (timedelta(minutes=-1), 100, timedelta()),  # reported out of order
]


@pytest.mark.parametrize(("apart", "line", "time"), PACES)
def test_a_time_that_nobody_waits_is_told_as_far_as_there_is_one(
    apart: timedelta, line: int, time: timedelta
) -> None:
    prompts = [Prompt(n, START + n * apart, n) for n in (1, 2, 3)]

    found = project(prompts, lines(line, 2 * line))

    assert found is not None
    assert (found.generations, found.time) == (line - 2, time)


def test_nothing_is_said_without_a_line() -> None:
    prompts = [Prompt(n, START, n) for n in range(5)]

    assert project(prompts, lines(None, None)) is None


def test_nothing_is_told_where_no_window_is_known() -> None:
    """No call to come has a level then, whichever default is above it."""
    prompts = [Prompt(n, START + timedelta(minutes=n), 10 * n) for n in (1, 2, 3)]

    assert project(prompts, lines(100, None)) is None
