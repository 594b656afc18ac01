"""Ids of tool calls for the formats that have none: Gemini and Ollama."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.providers.shared.tool_ids import (
    CallIds,
    arguments_object,
    arguments_text,
    derived_id,
    is_derived,
    next_number,
    object_of,
)
from helmdash.providers.wire import Message, Role, ToolCall


@given(number=st.integers(0, 10**6), name=st.text(max_size=80))
def test_a_derived_id_is_one_that_every_provider_takes(number: int, name: str) -> None:
    call_id = derived_id(number, name)

    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", call_id)
    assert is_derived(call_id)


@pytest.mark.parametrize("call_id", ["call_abc", "toolu_01", "call_AbC123dEf", "", "call_1"])
def test_a_vendors_id_is_not_taken_for_a_derived_one(call_id: str) -> None:
    assert not is_derived(call_id)


def test_ids_go_on_counting_where_the_conversation_stopped() -> None:
    ids = CallIds(count=3)

    assert [ids.call("f", None), ids.call("f", "given"), ids.call("g", None)] == [
        "call_3_f",
        "given",
        "call_5_g",
    ]


@pytest.mark.parametrize(
    ("ids", "number"),
    [
        ([], 0),
        (["call_abc", "toolu_1"], 2),
        (["call_0_f", "call_1_f"], 2),
        # the calls before these were cut from the history
        (["call_7_f", "call_8_g"], 9),
        # no number of ours
        (["call_" + "9" * 5000 + "_f"], 1),
    ],
)
def test_the_next_number_is_above_every_id_that_is_left(ids: list[str], number: int) -> None:
    calls = tuple(ToolCall(id=one, name="f", arguments="") for one in ids)

    assert next_number([Message(role=Role.ASSISTANT, parts=calls)]) == number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a":1}', {"a": 1}),
        # no object, or none at all: kept as it was said
        ("[1]", {"_arguments": "[1]"}),
        ("null", {"_arguments": "null"}),
        ('{"a":', {"_arguments": '{"a":'}),
    ],
)
def test_arguments_become_an_object(text: str, expected: object) -> None:
    assert arguments_object(text) == expected


def test_what_nests_too_deeply_to_be_written_is_no_object() -> None:
    deep = '{"a":' * 230 + "1" + "}" * 230
    value: object = 1
    for _ in range(230):
        value = [value]

    assert object_of(deep) is None
    assert arguments_text(value) == ""
    assert arguments_text({"a": [1]}) == '{"a":[1]}'
    assert arguments_text('{"a"') == '{"a"'
