"""What recording makes of the facts that only a gateway tells."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.finish import FinishReason
from helmdash.core.text.tokens import TOKENS_PER_IMAGE
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call
from tests.factories import make_capture
from tests.recording.chats import nameless
from tests.recording.support import HEALTHY, prompt, record


def test_the_budget_is_looked_up_by_the_id_that_budgets_know(project: ProjectInfo) -> None:
    (answer,) = record(
        project, prompt(HEALTHY, model="my-proxy/gpt-4o", budget_model="openai/gpt-4o")
    )

    assert answer.health.level is Level.HEALTHY
    row = Call.objects.get()
    assert (row.model, row.budget_key, row.limit_tokens) == (
        "my-proxy/gpt-4o",
        "openai/gpt-4o",
        128_000,
    )


@pytest.mark.parametrize(
    ("told", "finish", "cause"),
    [
        # Ollama and Gemini call it a stop
        ({"finish_reason": "stop", "tool_calls": 1}, FinishReason.TOOL_CALLS, None),
        ({"finish_reason": "STOP", "tool_calls": 2, "content": ""}, FinishReason.TOOL_CALLS, None),
        ({"finish_reason": "stop", "tool_calls": 0}, FinishReason.STOP, None),
        # a word for something else stays what it is
        ({"finish_reason": "length", "tool_calls": 1}, FinishReason.LENGTH, None),
        ({"finish_reason": None, "tool_calls": 1, "content": ""}, None, None),
        (
            {"finish_reason": "length", "raw_content_len": 0, "reasoning_len": 800},
            FinishReason.LENGTH,
            "reasoning_exhausted",
        ),
    ],
)
def test_calls_of_tools_and_reasoning_are_counted(
    project: ProjectInfo, told: dict[str, Any], finish: FinishReason | None, cause: str | None
) -> None:
    (answer,) = record(project, make_capture(**told))

    assert answer.finish_reason is finish
    assert (answer.cause.name.value if answer.cause else None) == cause
    assert Call.objects.get().finish_reason_raw == (told["finish_reason"] or "")


def test_equal_prompts_are_told_by_their_hash_without_their_texts(project: ProjectInfo) -> None:
    record(project, nameless("hi", reply="One."), nameless("hi", reply="Two."), nameless("bye"))

    one, two, other = Call.objects.order_by("id").values_list("prompt_hash", flat=True)
    assert one == two != other
    assert one.startswith("chain-1:")


def test_where_texts_come_along_the_hash_is_that_of_the_messages(project: ProjectInfo) -> None:
    record(project, nameless("hi", messages=({"role": "user", "content": "hi"},)))

    assert Call.objects.get().prompt_hash.startswith("b2:")


@pytest.mark.parametrize(
    ("sent", "tokens"),
    [
        (SentSizes(bytes=4_000), 1_200),
        (SentSizes(bytes=4_000, images=0), 1_200),
        (SentSizes(bytes=4_000, images=3), 1_200 + 3 * TOKENS_PER_IMAGE),
        (SentSizes(bytes=0, images=1), TOKENS_PER_IMAGE),
        # without the text an estimate would tell too little
        (SentSizes(images=3), None),
        (None, None),
    ],
)
def test_an_estimate_counts_images_by_the_piece(
    project: ProjectInfo, sent: SentSizes | None, tokens: int | None
) -> None:
    record(project, make_capture(sent=sent))

    assert Call.objects.get().estimate_tokens == tokens


def test_the_bytes_of_a_part_of_a_prompt_are_no_estimate_of_it(project: ProjectInfo) -> None:
    record(project, make_capture(sent=SentSizes(bytes=4_000), sent_is_prompt=False))

    assert Call.objects.get().estimate_tokens is None


def test_the_path_of_a_nameless_call_takes_few_statements(
    project: ProjectInfo, django_assert_max_num_queries: Any
) -> None:
    calls = [nameless(f"question {number}") for number in range(64)]
    record(project, *calls[:1])

    # One of them is for exporters, whether or not there is one.
    with django_assert_max_num_queries(17):
        record(project, *calls[1:])
