"""A failing first request that comes again and again is one conversation, not one for each try."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.core.conversations.first_retries import FIRST_RETRY_VERSION
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call
from tests.factories import NOW
from tests.recording.chats import TASK, nameless
from tests.recording.support import record

pytestmark = pytest.mark.django_db

FAILED: dict[str, Any] = {
    "status": "error", "http_status": 500, "error_code": "server_error", "usage": None,
    "finish_reason": None, "latency_ms": 1000,
}  # fmt: skip


def at(seconds: float, capture: Capture) -> Capture:
    return replace(capture, started_at=NOW + timedelta(seconds=seconds))


def failing(seconds: float, *texts: str, **over: Any) -> Capture:
    return at(seconds, replace(nameless(*(texts or (TASK,))), **{**FAILED, **over}))


def answered(seconds: float, *texts: str, **over: Any) -> Capture:
    return at(seconds, replace(nameless(*(texts or (TASK,)), reply="Done."), **over))


def talks(project: ProjectInfo, *captures: Capture, together: bool = False) -> list[str]:
    """The conversation of each, as a letter in the order of their first calls."""
    batches = [captures] if together else [(one,) for one in captures]
    names = [str(one.conversation) for batch in batches for one in record(project, *batch)]
    letters = {name: chr(97 + number) for number, name in enumerate(dict.fromkeys(names))}
    return [letters[name] for name in names]


@pytest.mark.parametrize("together", [True, False])
def test_eight_tries_of_one_failing_prompt_are_one_conversation(
    project: ProjectInfo, together: bool
) -> None:
    tries = [failing(2 * number) for number in range(8)]

    assert talks(project, *tries, together=together) == ["a"] * 8
    rows = Call.objects.order_by("generation").values_list("generation", "placed_by")
    assert list(rows) == [
        (1, "chain-1 new"), *((number, FIRST_RETRY_VERSION) for number in range(2, 9)),
    ]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
def test_the_try_that_is_answered_belongs_to_it_and_the_talk_goes_on(
    project: ProjectInfo, together: bool
) -> None:
    further = at(9, nameless(TASK, "Done.", "And now?", reply="Yes."))

    found = talks(project, failing(0), failing(2), answered(4), further, together=together)

    assert found == ["a"] * 4


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (answered(0), answered(2)),  # answered: two chats that begin alike
        (answered(0), failing(2)),
        (failing(0), answered(0.5)),  # in parallel: it began before the other was over
        (failing(0), failing(0)),
        (failing(0), answered(700)),  # somebody else's, or another day
        (failing(0), answered(2, "Something else entirely.")),
        (failing(0), replace(answered(2), model="openai/gpt-5")),
        (failing(0), replace(answered(2), caller="somebody else")),
        (failing(0, "hi"), answered(2, "hi", "Hello!", "go on")),
    ],
)
def test_what_is_no_retry_stays_apart(project: ProjectInfo, first: Capture, again: Capture) -> None:
    assert talks(project, first, again) == ["a", "b"]


def test_a_request_of_another_size_is_another_one(project: ProjectInfo) -> None:
    """System prompts are no part of a chain's marks: their size tells two agents apart."""

    def sized(one: Capture, size: int) -> Capture:
        return replace(one, sent=SentSizes(bytes=size, messages=1))

    found = talks(
        project,
        sized(failing(0), 5000),
        sized(failing(2), 5010),
        sized(failing(4), 9000),
    )

    assert found == ["a", "a", "b"]


def test_other_spellings_of_a_model_are_the_same(project: ProjectInfo) -> None:
    first, again = failing(0), replace(failing(2), model="OpenAI/GPT-4o")

    assert talks(project, first, again) == ["a", "a"]


@pytest.mark.parametrize(
    "over",
    [
        {"status": "cancelled", "http_status": None, "error_code": "client_disconnected"},
        {"http_status": 429, "error_code": "rate_limited"},
        {"http_status": 502, "error_code": "connection_error"},
        {"status": "success", "http_status": 200, "error_code": None, "content": ""},
    ],
)
def test_every_way_to_get_no_answer_counts(project: ProjectInfo, over: dict[str, Any]) -> None:
    assert talks(project, failing(0, **over), answered(2)) == ["a", "a"]
