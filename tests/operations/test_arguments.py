"""Arguments against their schema: what is given must fit, what is missing may be."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings

from helmdash.core.planning.plans import ArgFault
from helmdash.operations.planning.arguments import check_args
from tests.core.catalogs import odd

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["url", "deep"],
    "properties": {
        "url": {"type": "string", "minLength": 3},
        "pages": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["fast", "full"]},
        "deep": {"type": "object", "required": ["a"], "properties": {"b": {"type": "boolean"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"type": ["integer", "null"]},
    },
}


def told(schema: object, args: object) -> list[tuple[str, str]]:
    faults = check_args(schema, args)  # type: ignore[arg-type]
    return [(fault.field, fault.message) for fault in faults]


@pytest.mark.parametrize(
    "args",
    [
        {},  # the planner leaves out what it cannot know
        {"deep": {}},
        {"url": "https://a", "pages": 2, "mode": "fast", "deep": {"b": True}, "tags": ["x"]},
        {"size": None},
        {"other": 1},  # the schema is open
        # Values that an earlier step gives.
        {"pages": "${{ steps.1.output.pages }}", "mode": "<from step 1>"},
        {"deep": "{{deep}}", "tags": ["a", "$step1.tag"], "url": "$x"},
    ],
)
def test_arguments_that_fit_have_no_faults(args: dict[str, Any]) -> None:
    assert told(SCHEMA, args) == []


@pytest.mark.parametrize(
    ("args", "field", "message"),
    [
        ({"pages": "2"}, "pages", "must be a whole number"),
        ({"pages": 0}, "pages", "does not satisfy minimum 1"),
        ({"url": 3}, "url", "must be a text"),
        ({"url": ""}, "url", "does not satisfy minLength 3"),
        ({"mode": "slow"}, "mode", 'must be one of "fast", "full"'),
        ({"deep": {"b": "yes"}}, "deep.b", "must be true or false"),
        ({"tags": ["a", 1]}, "tags.1", "must be a text"),
        ({"size": "big"}, "size", "must be a whole number or null"),
        # Text around a template is a text.
        ({"pages": "about ${{ n }} pages"}, "pages", "must be a whole number"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(args: Any, field: str, message: str) -> None:
    assert told(SCHEMA, args) == [(field, message)]


def test_names_that_a_closed_schema_does_not_know_are_told() -> None:
    schema = {"properties": {"text": {}, "tone": {}}, "additionalProperties": False}

    assert told(schema, {"txt": 1, "text": 2, "x": 3}) == [
        ("txt", "is not known here; known are text, tone"),
        ("x", "is not known here; known are text, tone"),
    ]


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        # Alternatives that only `required` tells apart.
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}),
        ({"not": {"required": ["a"]}}, {}),
        ({"if": {"required": ["a"]}, "then": {"properties": {"b": False}}}, {"b": 1}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
        ({"minProperties": 2}, {"a": 1}),
        ({"properties": {"v": {"oneOf": [{"type": "integer"}, {"type": "null"}]}}}, {"v": "{{v}}"}),
    ],
)
def test_nothing_is_missing(schema: object, args: object) -> None:
    assert told(schema, args) == []


def test_a_value_that_fits_no_alternative_is_told() -> None:
    schema = {"properties": {"v": {"oneOf": [{"type": "integer"}, {"type": "null"}]}}}

    assert told(schema, {"v": "x"}) == [("v", "fits none of the forms allowed here")]
    assert told({"properties": {"v": False}}, {"v": 1}) == [("", "is not allowed here")]


def test_a_flag_in_the_old_style_costs_no_checks() -> None:
    schema = {"properties": {"n": {"type": "integer", "required": True}}}

    assert told(schema, {"n": "x"}) == [("n", "must be a whole number")]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},  # no type of JSON
        {"properties": 3},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},  # nothing is fetched
        {"properties": {"a": {"$ref": "#/$defs/none"}}},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"enum": ["x" * 20_000], "type": "array"},  # larger than any schema of a tool
    ],
)
def test_a_broken_schema_is_not_held_against_the_model(schema: object) -> None:
    assert told(schema, {"a": 1}) == []


def test_faults_are_few_and_short() -> None:
    schema = {"properties": {f"p{n}": {"enum": ["x" * 60] * 10} for n in range(20)}}

    faults = told(schema, {f"p{n}": 1 for n in range(20)})

    assert len(faults) == 10
    assert all(len(message) <= 200 for _, message in faults)


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 40_000 + "b"}),
        (
            {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}},
            {"a": [[0] * 30_000] * 9},
        ),
        ({"additionalProperties": {"uniqueItems": True}}, {"a": [{"n": n} for n in range(30_000)]}),
        ({"additionalProperties": False}, {f"a{n}": n for n in range(20_000)}),
    ],
)
def test_hostile_schemas_come_to_an_end(schema: object, args: object) -> None:
    before = time.process_time()

    told(schema, args)

    # Measured 0.1 s.
    assert time.process_time() - before < 2


@settings(max_examples=60, deadline=None)
@given(odd, odd)
def test_nothing_is_ever_raised(schema: object, args: object) -> None:
    faults = check_args({"properties": {"a": schema}, "x": schema}, {"a": args})

    assert all(isinstance(fault, ArgFault) for fault in faults)
