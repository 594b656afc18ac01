"""Arguments: what entries take, and what models give."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.planning.arguments import (
    MAX_DEPTH,
    as_args,
    input_schema_of,
    is_deeper,
    missing_members,
    read_args,
    same_form,
)
from tests.core.catalogs import make_pack, make_pipeline

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def schema_of(**members: Any) -> object:
    entry = make_pipeline(**members) if "id" in members else make_pack(**members)
    member = "pipelines" if "id" in members else "packs"
    return input_schema_of(parse_catalog({member: [entry]}).entries[0])


@pytest.mark.parametrize(
    "members",
    [
        {"input_schema": SCHEMA},
        {"inputSchema": SCHEMA},  # as MCP writes it
        {"parameters": SCHEMA},  # as OpenAI writes it
        {"metadata": {"input_schema": SCHEMA}},
        {"metadata": {"inputSchema": SCHEMA}},
        {"input_schema": None, "metadata": {"parameters": SCHEMA}},
        {"inputs": SCHEMA},
    ],
)
def test_the_schema_of_a_pack_is_found(members: dict[str, object]) -> None:
    assert schema_of(**members) == SCHEMA


def closed(**inputs: object) -> dict[str, object]:
    return {"type": "object", "properties": inputs, "additionalProperties": False}


@pytest.mark.parametrize(
    ("inputs", "schema"),
    [
        ({"text": {"type": "string"}}, closed(text={"type": "string"})),
        ({"text": "string", "page": "url"}, closed(text={"type": "string"}, page={})),
        (
            {"n": {"type": "integer", "required": True}, "m": {"required": False}},
            {**closed(n={"type": "integer"}, m={}), "required": ["n"]},
        ),
        ({"n": {"type": "markdown", "title": "t"}}, closed(n={"title": "t"})),
        ({"type": {"type": "string"}}, closed(type={"type": "string"})),  # an input called "type"
        ({"properties": {"type": "object"}}, closed(properties={"type": "object"})),
        ([{"name": "text", "type": "string"}, "tone"], closed(text={"type": "string"}, tone={})),
        ([{"name": "n", "schema": {"type": "integer"}}], closed(n={"type": "integer"})),
        (SCHEMA, SCHEMA),
        ({"properties": {"a": {}}}, {"properties": {"a": {}}}),
        ({}, None),
        ([], None),
        ([3, {"type": "string"}], None),
        ("text", None),
        (None, None),
    ],
)
def test_the_inputs_of_a_pipeline_become_one_schema(inputs: object, schema: object) -> None:
    assert schema_of(id="p", metadata={"inputs": inputs}) == schema
    assert schema_of(id="p", inputs=inputs) == schema


@pytest.mark.parametrize(
    ("holder", "args"),
    [
        ({"args": {"a": 1}}, {"a": 1}),
        ({"arguments": {"a": 1}}, {"a": 1}),
        ({"inputs": {"a": 1}, "args": None}, {"a": 1}),
        ({"parameters": '{"a": 1}'}, {"a": 1}),
        ({"args": ""}, {}),
        ({"args": {}}, {}),
        ({"args": {"a\0": ["\0"]}}, {"a\ufffd": ["\ufffd"]}),  # PostgreSQL stores no NUL
        ({}, None),
        ({"args": None}, None),
    ],
)
def test_arguments_are_read_from_where_they_are(holder: dict[str, Any], args: object) -> None:
    assert (read_args(holder).args, read_args(holder).faults) == (args, ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "is a list; it must be an object"),
        (3, "is a number; it must be an object"),
        (True, "is true or false; it must be an object"),
        ("[1]", "is a list; it must be an object"),
        ("a path", "is a text; it must be an object"),
        ('{"a": 1', "is a text; it must be an object"),
        ({"a": float("nan")}, "holds a value that JSON cannot carry"),
        ({"a": "\ud800"}, "holds a value that JSON cannot carry"),
    ],
)
def test_other_arguments_are_none_with_a_fault(value: object, message: str) -> None:
    found = as_args(value)

    assert found.args == {}
    assert [(fault.field, fault.message) for fault in found.faults] == [
        ("", message)
    ]  # of all of them


NESTED = {
    "type": "object",
    "required": ["url", "deep", 3],
    "properties": {
        "url": {"type": "string"},
        "deep": {"type": "object", "required": ["a"], "properties": {"b": {"required": ["c"]}}},
        "rows": {"type": "array", "items": {"required": ["id"]}},
        "loose": {"type": "string", "required": True},  # as no JSON Schema has it
    },
    "allOf": [{"required": ["url", "more"]}, 3],
}


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        ({}, ["url", "deep", "loose", "more"]),
        ({"url": "{{url}}", "deep": "$step1", "loose": None, "more": ""}, []),  # given, somehow
        ({"url": 1, "deep": {}, "loose": 1, "more": 1}, ["deep.a"]),
        ({"url": 1, "deep": {"a": 1, "b": {}}, "loose": 1, "more": 1}, ["deep.b.c"]),
        (
            {"url": 1, "deep": {"a": 1}, "loose": 1, "more": 1, "rows": [{"id": 1}, {}, "{{x}}"]},
            ["rows.1.id"],
        ),
    ],
)
def test_required_members_that_are_absent_are_missing(args: dict[str, Any], missing: Any) -> None:
    assert list(missing_members(NESTED, args)) == missing


# As pydantic, and so every MCP server in Python, writes an argument that is a model of its own.
REFERRING: dict[str, Any] = {
    "$ref": "#/$defs/Upload",
    "$defs": {
        "Upload": {
            "properties": {
                "target": {"$ref": "#/$defs/Target%20of"},
                "files": {"items": {"$ref": "#/$defs/a~1b"}},
            },
            "required": ["target"],
        },
        "Target of": {"properties": {"in": {"$ref": "#"}}, "required": ["url"]},
        "a/b": {"required": ["path"]},
    },
}


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        ({}, ["target"]),
        ({"target": {}}, ["target.url"]),
        ({"target": {"url": "u", "in": {}}}, ["target.in.target"]),
        ({"target": {"url": "u"}, "files": [{"path": "p"}, {}]}, ["files.1.path"]),
    ],
)
def test_what_is_required_stands_behind_references_too(
    args: dict[str, Any], missing: list[str]
) -> None:
    assert list(missing_members(REFERRING, args)) == missing


@pytest.mark.parametrize(
    "reference", ["#/$defs/none", "#/required/7", "#/required/x", "https://x/y", "#x", 7, "#/a"]
)
def test_a_reference_that_leads_nowhere_requires_nothing(reference: object) -> None:
    schema = {"required": ["a"], "$ref": reference}

    assert missing_members(schema, {}) == ("a",)


def test_what_is_missing_is_bounded_and_odd_schemas_require_nothing() -> None:
    many = {"required": [f"m{n}" for n in range(1_000)]}
    rows = {"properties": {"rows": {"items": {"required": ["x" * 1_000]}}}}
    loop: dict[str, Any] = {"required": ["a"]}
    loop["allOf"] = [loop] * 3
    turns = {"required": ["a"], "$ref": "#", "allOf": [{"$ref": "#"}] * 3}

    assert len(missing_members(many, {})) == 20
    assert len(missing_members(rows, {"rows": [{}] * 100_000})) == 20
    assert len(missing_members(rows, {"rows": [{}]})[0]) < 200
    assert missing_members(loop, {}) == missing_members(turns, {}) == ("a",)
    for odd in (None, {"required": "a"}, {"properties": 3}, {"properties": {"a": True}}):
        assert missing_members(odd, {"a": {}}) == ()


@pytest.mark.parametrize(("levels", "is_kept"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_arguments_may_nest_so_deep(levels: int, is_kept: bool) -> None:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}

    assert is_deeper(value, MAX_DEPTH) is not is_kept
    assert bool(as_args(value).args) is is_kept


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({}, {"a": None}, False),
    ],
)
def test_arguments_compare_as_json(one: Any, other: Any, are_same: bool) -> None:
    assert (same_form(one) == same_form(other)) is are_same
