"""What a stream is known by when it comes again, and what a conversation stores of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from helmdash.core.budgets.levels import Level
from helmdash.core.conversations.fingerprints import ChatTurn, links_of
from helmdash.core.conversations.repeated_streams import NewestStream, Standing, mark_of

AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
TURNS = [ChatTurn("user", "Do it."), ChatTurn("assistant", "Done."), ChatTurn("user", "More.")]
NEWEST = NewestStream(
    generation=7,
    mark="m",
    started_at=AT,
    over=AT + timedelta(milliseconds=1500),
    attempts=2,
    is_broken=True,
    is_cancelled=False,
    before=Standing(level=Level.CAUTION, known_level=Level.CAUTION, cut_generation=3),
)


def test_a_request_is_known_by_the_same_before_and_after_its_reply() -> None:
    before = links_of(TURNS, reply=None, is_retry=False)
    after = links_of(TURNS, reply=ChatTurn("assistant", "Some"), is_retry=True)
    marks = {mark_of(each, model="m", caller="c") for each in (before, after)}
    others = {
        mark_of(before, model="m", caller="d"),
        mark_of(before, model="n", caller="c"),
        mark_of(replace(before, after="i1"), model="m", caller="c"),
        mark_of(links_of(TURNS[:1], reply=None, is_retry=False), model="m", caller="c"),
    }

    assert len(marks) == 1
    assert len(others - marks) == 4
    assert mark_of(links_of([], reply=None, is_retry=False), model="m", caller="c") == ""


def test_what_is_stored_comes_back_as_it_was() -> None:
    assert NewestStream.from_json(NEWEST.to_json()) == NEWEST


@pytest.mark.parametrize(
    "damage",
    [{"g": 0}, {"g": "7"}, {"m": ""}, {"s": "soon"}, {"s": None}, {"o": "2026-11-23T12:00:00"}],
)
def test_what_makes_no_sense_is_no_stream(damage: dict[str, object]) -> None:
    assert NewestStream.from_json({**NEWEST.to_json(), **damage}) is None
    assert NewestStream.from_json([1]) is None
