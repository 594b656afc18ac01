"""A stream that is asked for again is the same generation to care: nothing counts twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from helmdash.core.conversations.fingerprints import ChainLinks, links_of
from helmdash.core.conversations.repeated_streams import StreamRequest, mark_of
from helmdash.operations import care
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.budgets import budgets
from helmdash.records.models import Guidance
from tests.factories import make_capture
from tests.operations.care_support import Talk, short
from tests.recording.chats import turns
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project

BROKEN: dict[str, Any] = {"status": "error", "finish_reason": None}


@pytest.fixture
def talk(db: None) -> Talk:
    talk = Talk(make_ruled_project())
    talk.turns(HEALTHY, 2)
    return talk


def links(text: str) -> ChainLinks:
    return replace(links_of(turns(text), reply=None, is_retry=False), is_stream=True)


def asked(text: str, newest: datetime) -> StreamRequest:
    """A request half a minute after the newest one began."""
    at = newest + timedelta(seconds=30)
    mark = mark_of(links(text), model=make_capture().model, caller="owner")
    return StreamRequest(mark=lambda: mark, started_at=at, is_retry=False)


def attempt(talk: Talk, text: str, tokens: int | None, **over: Any) -> Recorded:
    return talk.call(tokens, links=links(text), latency_ms=1000, **over)


def advance(talk: Talk, text: str, **over: Any) -> care.Advanced:
    return talk.advance(stream=asked(text, talk.at), **over)


def test_attempts_neither_skip_nor_double_a_guidance(talk: Talk) -> None:
    """The same words for every attempt, and for each generation what it gets without attempts."""
    attempt(talk, "start", CAUTION)
    told: list[str] = []
    for number, tokens in enumerate([CAUTION] * 5 + [CRITICAL] * 6):
        text = f"turn {number}"
        first = advance(talk, text)
        for _ in range(number % 3):
            attempt(talk, text, None, **BROKEN)
            again = advance(talk, text)
            assert again.is_repeat
            assert (again.generation, again.text) == (first.generation, first.text)
            assert (again.action, again.remaining) == (first.action, first.remaining)
        assert attempt(talk, text, tokens).generation == first.generation
        told.append(short(first))
    told.append(short(advance(talk, "last")))

    assert told == ["soft"] * 3 + ["hard", "none", "none", *"43210", "clear"]
    assert Guidance.objects.count() == 10


def test_after_a_clear_that_was_sent_and_broke_off_nothing_is_cleared_again(talk: Talk) -> None:
    talk.turns(CRITICAL, 6)
    assert advance(talk, "go on").action == "clear"
    attempt(talk, "go on", None, **BROKEN)

    again = advance(talk, "go on")
    answer = attempt(talk, "go on", HEALTHY)

    assert (again.action, again.round_number, again.is_repeat) == ("none", 2, True)
    assert (answer.generation, answer.round_number) == (again.generation, 2)
    assert talk.turns(HEALTHY, 2) == ["none"] * 2


@pytest.mark.parametrize("is_told", [True, False])
def test_an_instruction_that_a_later_attempt_answered_is_not_carried_again(
    talk: Talk, is_told: bool
) -> None:
    """Also where whoever asks does not tell care that the request is the same."""

    def ask() -> int:
        stream = {"stream": asked("do it", talk.at)} if is_told else {}
        return talk.advance(user_prompt="Do it.", **stream).generation

    generations = [ask()]
    attempt(talk, "do it", None, **BROKEN)
    generations.append(ask())
    answer = attempt(talk, "do it", HEALTHY)

    assert generations == ([3, 3] if is_told else [3, 4])
    assert answer.generation == 3
    assert talk.clear().carried == ()


def test_a_look_knows_an_attempt(talk: Talk) -> None:
    attempt(talk, "do it", None, **BROKEN)
    budget = budgets.table(project_id=talk.project.id).lookup(make_capture().model)

    def look(text: str, *waiting: str) -> int:
        own = [
            make_capture(
                conversation=talk.name,
                caller="owner",
                links=links(each),
                started_at=talk.at + timedelta(seconds=30),
            )
            for each in waiting
        ]
        found = care.peek(
            project_id=talk.project.id, conversation=talk.name, budget=budget, waiting=own,
            stream=asked(text, talk.at),
        )  # fmt: skip
        assert found is not None
        return found.generation

    assert (look("do it"), look("something else")) == (3, 4)
    # The attempt was made by this process, and is on its way to the database.
    assert (look("next", "do it"), look("next", "something else")) == (4, 5)
