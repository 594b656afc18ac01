"""Guidance finds room: it comes before a request outgrows its window, and counts only if told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helmdash.core.calls.capture import SentSizes
from helmdash.core.care.remediation import is_close
from helmdash.operations import care
from helmdash.queries.budgets import budgets
from helmdash.queries.conversations.care import care_of
from helmdash.records.models import Guidance
from tests.factories import make_capture
from tests.operations.care_support import Talk, short
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project

LIMIT, OPTIMAL = 128_000, 100_000


@pytest.fixture
def talk(db: None) -> Talk:
    return Talk(make_ruled_project())


@pytest.mark.parametrize(
    ("prompt", "expected", "limit", "found"),
    [
        (20_000, 20_100, LIMIT, False),
        (90_000, OPTIMAL, LIMIT, False),
        (90_000, OPTIMAL + 1, LIMIT, True),  # above the line already
        (50_000, 89_000, LIMIT, False),  # as much again: 128,000, which fits
        (50_000, 89_001, LIMIT, True),
        (50_000, 89_001, None, False),  # what would fit nobody knows
        (90_000, 20_000, LIMIT, False),  # it shrank
        (None, 120_000, LIMIT, False),
        (20_000, None, LIMIT, False),
    ],
)
def test_a_request_is_close_to_a_line_or_not(
    prompt: int | None, expected: int | None, limit: int | None, found: bool
) -> None:
    assert is_close(prompt, expected, OPTIMAL, limit) is found


def sized(tokens: int) -> Callable[[object], int]:
    """A request that comes to so many tokens, where the call before had a byte for each."""
    return lambda restart: tokens


def test_the_first_guidance_comes_before_the_request_that_does_not_fit(talk: Talk) -> None:
    for _ in range(2):
        talk.call(HEALTHY, sent=SentSizes(bytes=HEALTHY))
    assert short(talk.advance(sent_bytes=sized(HEALTHY + 100))) == "none"
    talk.call(HEALTHY, sent=SentSizes(bytes=HEALTHY))

    told = talk.advance(sent_bytes=sized(OPTIMAL + 10))

    assert short(told) == "soft"
    assert not _is_resting(talk, OPTIMAL + 10)
    # An estimate only: a reading that is healthy after all ends it.
    talk.call(HEALTHY, sent=SentSizes(bytes=HEALTHY))
    assert short(talk.advance(sent_bytes=sized(HEALTHY + 100))) == "none"
    assert _is_resting(talk, HEALTHY + 100)


def _is_resting(talk: Talk, tokens: int) -> bool:
    model = make_capture().model
    budget = budgets.table(project_id=talk.project.id).lookup(model)
    found = care.peek(
        project_id=talk.project.id,
        conversation=talk.name,
        budget=budget,
        model=model,
        sent_bytes=sized(tokens),
    )
    return found is not None


@pytest.mark.parametrize(
    ("level", "told"),
    [
        # What was left out comes with the next one; the countdown goes on.
        (CAUTION, ["soft", "none", "soft", "soft", "hard"]),
        (CRITICAL, ["4", "none", "2", "1", "0"]),
    ],
)
def test_what_has_no_room_does_not_count_as_told(talk: Talk, level: int, told: list[str]) -> None:
    talk.call(level, sent=SentSizes(bytes=level))
    found = []
    for number in range(5):
        has_room = number != 1
        step = talk.advance(fits=lambda restart, size, newest, has_room=has_room: has_room)
        found.append(short(step))
        talk.call(level, sent=SentSizes(bytes=level))
        assert has_room or (step.text is None and "no room" in step.reason)

    assert found == told
    assert Guidance.objects.count() == 4
    view = care_of(project_id=talk.project.id, conversation=talk.name)
    assert view.countdown == (0 if level == CRITICAL else None)
