"""A look that writes nothing says the same as the step it stands for, or asks for the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.capture import Capture
from helmdash.operations import care
from helmdash.operations.care import ClientHistory, NothingDue
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import PendingPrompt
from tests.factories import make_capture
from tests.operations.care_support import OVERFLOW, Talk
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project

CLIENT = ClientHistory(
    messages=4, digest=lambda: "d", carried=lambda: (1,), draft=lambda: {"Goal": "Ship it."}
)


@pytest.fixture
def talk(db: None) -> Talk:
    talk = Talk(make_ruled_project())
    talk.turns(HEALTHY, 2)
    return talk


def look(talk: Talk, *waiting: Capture) -> NothingDue | None:
    project = talk.project
    model = make_capture().model
    budget = budgets.table(project_id=project.id).lookup(model)
    return care.peek(project_id=project.id, conversation=talk.name, budget=budget, waiting=waiting)


def cleared(talk: Talk) -> None:
    """A fresh start with a client, and a healthy call of the new round."""
    talk.turns(CRITICAL, 6)
    assert talk.advance(client=CLIENT).action == "clear"
    talk.call(HEALTHY)


STORIES: dict[str, tuple[Callable[[Talk], object], bool]] = {
    "healthy": (lambda talk: None, True),
    "without usage": (lambda talk: talk.call(None), True),
    "caution": (lambda talk: talk.call(CAUTION), False),
    "critical": (lambda talk: talk.call(CRITICAL), False),
    "refused as too long": (lambda talk: talk.call(None, **OVERFLOW), False),
    # Held a little longer, though the newest reading is healthy.
    "held": (lambda talk: (talk.turns(CAUTION, 2), talk.call(HEALTHY)), False),
    "no longer held": (lambda talk: (talk.turns(CAUTION, 2), talk.turns(HEALTHY, 4)), True),
    "a fresh start": (lambda talk: cleared(talk), True),
    "a fresh start without a call": (lambda talk: talk.clear(client=CLIENT), False),
    # No client was there to say what the package stands for: its history goes on as it comes.
    "cleared elsewhere": (lambda talk: (talk.clear(), talk.call(HEALTHY)), True),
}
HELD = ("caution", "critical")


@pytest.mark.parametrize("story", STORIES)
def test_a_look_says_the_same_as_the_step(talk: Talk, story: str) -> None:
    tell, is_resting = STORIES[story]
    tell(talk)

    look(talk)  # the budgets are at hand then
    with CaptureQueriesContext(connection) as asked:
        found = look(talk)

    assert (found is not None) is is_resting
    assert sum("records_round" in each["sql"] for each in asked) == 1
    assert not any(each["sql"].startswith(("BEGIN", "UPDATE", "INSERT")) for each in asked)
    told = talk.advance(client=CLIENT)
    # Only where this holds is the next step taken without a look.
    assert told.is_held is (story in HELD)
    if found is not None:
        assert (told.action, told.is_repeat) == ("none", False)
        assert (told.round_number, told.generation) == (found.round_number, found.generation)
        assert (told.restart, told.newest) == (found.restart, found.newest)


@pytest.mark.parametrize(
    ("tokens", "over", "is_resting"),
    [
        (HEALTHY, {}, True),
        (None, {}, True),
        (CAUTION, {}, False),
        (CRITICAL, {"conversation": None}, False),  # may be this one's
        (None, OVERFLOW, False),
        (None, {"status": "error", "http_status": 500}, False),  # why, the record tells
    ],
)
def test_calls_that_are_not_stored_yet_count_as_readings(
    talk: Talk, tokens: int | None, over: dict[str, object], is_resting: bool
) -> None:
    usage = None if tokens is None else {"prompt_tokens": tokens}
    waiting = make_capture(**{"conversation": talk.name, "usage": usage, **over})

    found = look(talk, waiting)

    assert (found is not None) is is_resting
    if found is not None:
        assert found.generation == 4


def test_an_unknown_conversation_takes_the_step(talk: Talk) -> None:
    assert look(Talk(talk.project, name="somebody-else")) is None


def test_a_text_kept_beside_the_call_is_carried_until_it_is_answered(talk: Talk) -> None:
    given: dict[str, Any] = {"project": talk.project, "conversation": talk.name, "text": "And now?"}
    care.keep_prompt(**given, generation=3, now=talk.tick())

    assert talk.clear().carried == ("And now?",)
    talk.call(HEALTHY)  # generation 3: the answer
    care.keep_prompt(**{**given, "text": "Then?"}, generation=4, now=talk.tick())
    assert talk.clear().carried == ("Then?",)
    # Noted late, when its answer is stored already.
    talk.call(HEALTHY)
    care.keep_prompt(**{**given, "text": "Late?"}, generation=4, now=talk.tick())
    assert talk.clear().carried == ()
    assert not PendingPrompt.objects.exists()


def test_a_look_at_another_project_sees_nothing(talk: Talk) -> None:
    other: ProjectInfo = make_ruled_project(slug="other")

    assert look(Talk(other)) is None


@pytest.mark.parametrize(("tokens", "most"), [(HEALTHY, 8), (CAUTION, 10), (CRITICAL, 11)])
def test_a_step_takes_few_statements(
    talk: Talk, django_assert_max_num_queries: Callable[[int], Any], tokens: int, most: int
) -> None:
    """Those of the savepoint included that a test's own transaction makes."""
    talk.turns(tokens, 2)
    look(talk)  # the budgets are at hand, also where the turns took their second

    with django_assert_max_num_queries(most):
        talk.advance(client=CLIENT, sent_bytes=lambda restart: 1, fits=lambda *room: True)
