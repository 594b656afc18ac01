"""Decode, with replies and schemas that nobody sends in good faith (or that a bad model wrote)."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import orjson
import pytest

from helmdash.api.openapi import examples
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.operations import json_schema
from tests.api.conftest import Door, fields_of

pytestmark = pytest.mark.one_database

STEPS = {"type": "object", "required": ["steps"], "properties": {"steps": {"type": "array"}}}
HALF = '{"a":"\\ud800","b\\udfff":1}'  # plain ASCII; a JSON reader makes half a pair of it


@pytest.mark.parametrize("raw", [HALF, f"So {HALF} it is", HALF[:-1], HALF.replace(",", " ")])
@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_half_a_surrogate_pair_comes_back_as_the_replacement_character(
    owner: Door, raw: str, schema: dict[str, Any] | None
) -> None:
    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert response.status_code == 200
    assert response.json()["value"]["a"] == "\ufffd"


def test_an_answer_in_thoughts_that_never_close_is_told_as_such(owner: Door) -> None:
    raw = '<think>So:\n{"steps":[]}'

    found = owner.post("/decode", {"raw": raw, "schema": STEPS})
    unasked = owner.post("/decode", {"raw": raw})

    assert (found.status_code, found.json()["stage"]) == (200, "thoughts")
    assert found.json()["value"] == {"steps": []}
    assert (unasked.status_code, unasked.json()["code"]) == (422, "undecodable")


@pytest.mark.parametrize("raw", ["\\ud800", "\\ud800 {", '{"\\ud800', "[\\ud800"])
def test_half_a_surrogate_pair_in_what_is_no_json_is_undecodable(owner: Door, raw: str) -> None:
    response = owner.post("/decode", {"raw": raw})

    assert (response.status_code, response.json()["code"]) == (422, "undecodable")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a\ud800": ["\udfff"]}, {"a\ufffd": ["\ufffd"]}),
        (["\ud83d\ude00"], ["\U0001f600"]),  # two halves are a whole
        (["\ud800", 2**70], ["\ufffd", 2**70]),
    ],
)
def test_any_text_can_be_written(value: object, written: object) -> None:
    text = dump_json(value)

    assert text == dump_json(written)
    assert orjson.loads(text)


def test_a_call_with_such_text_can_be_read_back(owner: Door) -> None:
    call = {
        **examples.CALL,
        "id": "half",
        "metadata": {"note": HALF},
        "messages": [{"role": "user", "content": HALF}],
        "content": HALF,
        "error_message": HALF,
    }

    assert owner.post("/calls", call).status_code == 201
    told = owner.get("/calls/half")
    assert (told.status_code, told.json()["metadata"]) == (200, {"note": HALF})
    export = owner.get("/calls/export")
    assert [
        orjson.loads(line)["id"] for line in b"".join(export.streaming_content).splitlines()
    ] == ["half"]


def test_a_fit_with_such_text_is_answered(owner: Door) -> None:
    catalog = {"packs": [{"name": "a.b", "description": HALF}]}

    response = owner.post("/fit", {**examples.FIT, "intent": HALF, "catalog": catalog})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "schema", [STEPS, {"$ref": "#/$defs/plan", "$defs": {"plan": STEPS}}], ids=["plain", "ref"]
)
@pytest.mark.parametrize(
    "raw",
    [
        '{"a":1}' * 50_000,
        "[" + '{"a":1},' * 43_000 + "{}]",
        '[["cut' + '"] {"a":1}' * 35_000,
    ],
    ids=["many", "inside", "never closes"],
)
def test_many_values_that_no_schema_accepts_are_refused_in_time(
    owner: Door, raw: str, schema: dict[str, Any]
) -> None:
    before = time.process_time()

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert (response.status_code, response.json()["code"]) == (422, "undecodable")
    # Measured 0.5 s; without a bound it was minutes.
    assert time.process_time() - before < 5


def test_references_over_many_values_come_to_an_end(owner: Door) -> None:
    schema = {"items": {"$ref": "#/$defs/any"}, "$defs": {"any": {}}, "maxItems": 0}
    raw = ("[" + '"a",' * 2_000 + '"a"]') * 40
    before = time.process_time()

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert (response.status_code, fields_of(response)) == (422, ["schema"])
    assert time.process_time() - before < 5


def test_a_deep_schema_on_a_deep_value_comes_to_an_end(owner: Door) -> None:
    """Each list inside of the value is a candidate, and each walks on to the long one."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(90):
        schema = {"items": schema, "type": "array"}
    raw = "[" * 180 + "0," * 30_000 + "0" + "]" * 180
    before = time.process_time()

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert response.status_code == 422
    assert time.process_time() - before < 5


def test_each_value_has_its_own_count_of_references(owner: Door) -> None:
    schema = {
        "items": {"$ref": "#/$defs/any"},
        "contains": {"const": 1},
        "$defs": {"any": {}},
    }
    raw = "So [1] or " + ("[" + '"a",' * 7_000 + '"a"] ') * 3  # read from the end

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert (response.status_code, response.json()["value"]) == (200, [1])


def _with_patterns(*patterns: str) -> dict[str, Any]:
    return {"properties": {f"p{n}": {"pattern": each} for n, each in enumerate(patterns)}}


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        # 12 MB and a tenth of a second each.
        ([rf"^\w{{200}}{n}$" for n in range(60)], "too large"),
        (["a" * 500_000], "too large"),
        (["(" * 500_000], "too deeply"),
        (["(?x) a # ["], "(?x)"),
    ],
)
def test_patterns_that_take_much_room_or_time_are_refused(
    owner: Door, patterns: list[str], said: str
) -> None:
    began = time.thread_time()
    response = owner.post("/decode", {"raw": '{"p0":"b"}', "schema": _with_patterns(*patterns)})

    assert time.thread_time() - began < 1.5
    assert (response.status_code, fields_of(response)) == (422, ["schema"])
    assert said in response.json()["detail"]


def test_a_pattern_that_is_at_many_places_at_once_counts_so(owner: Door) -> None:
    """Time in proportion to the text, but 5,000 places at each of its characters."""
    text = "".join(random.Random(1).choices("ab", k=200_000))
    body = {"raw": json.dumps({"p0": text}), "schema": _with_patterns("[ab]*a[ab]{5000}c")}

    began = time.thread_time()
    response = owner.post("/decode", body)

    assert time.thread_time() - began < 2
    assert (response.status_code, fields_of(response)) == (422, ["schema"])
    assert "takes too long" in response.json()["detail"]


def test_usual_patterns_are_checked_on_many_values(owner: Door) -> None:
    names = ["^[a-z0-9-]{1,64}$", r"^\w{1,50}$", r"^\d{4}-\d{2}-\d{2}$", "^https?://[^ ]{1,200}$"]
    row = dict(
        zip(("p0", "p1", "p2", "p3"), ("a-b", "ab_c", "2026-01-02", "https://x/y"), strict=True)
    )
    kept = json_schema._compiled_once.cache_info().maxsize
    assert kept is not None

    for schema in (_with_patterns(*names), _with_patterns(*(f"^a{n}$" for n in range(2 * kept)))):
        raw = json.dumps([row | {"p5": "a5"}] * 300 if "p5" not in schema["properties"] else [])
        response = owner.post("/decode", {"raw": raw, "schema": {"items": schema}})
        assert response.status_code == 200
        assert response.json()["stage"] != "failed"


def test_what_is_compiled_at_a_cost_is_not_kept(owner: Door) -> None:
    before = json_schema._compiled_once.cache_info().currsize

    for n in range(3):
        response = owner.post(
            "/decode", {"raw": '{"p0":"b"}', "schema": _with_patterns(rf"\w{{100}}{n}")}
        )
        assert response.status_code == 422  # the value does not fit

    assert json_schema._compiled_once.cache_info().currsize == before


def test_a_schema_cannot_call_in_another_dialect(owner: Door) -> None:
    """A part with a `$schema` would be checked by jsonschema's own classes, without our bounds."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    inside = {"properties": {"a": {"$schema": dialect, "pattern": "^(a+)+$"}}}

    response = owner.post("/decode", {"raw": '{"a":"b"}', "schema": inside})

    assert (response.status_code, fields_of(response)) == (422, ["schema"])


def test_a_part_with_both_kinds_of_reference_is_refused(owner: Door) -> None:
    """`unevaluatedProperties` would follow both, at each level again."""
    levels = {
        f"l{n}": {"$ref": f"#/$defs/l{n + 1}", "$dynamicRef": f"#/$defs/l{n + 1}"}
        for n in range(40)
    }
    schema = {"unevaluatedProperties": False, "$ref": "#/$defs/l0", "$defs": levels | {"l40": {}}}

    response = owner.post("/decode", {"raw": '{"a":1}', "schema": schema})

    assert (response.status_code, fields_of(response)) == (422, ["schema"])


def test_the_dialect_at_the_top_may_be_named(owner: Door) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"n": {"$ref": "#"}, "a": {"pattern": "^(a+)+$"}, "$schema": {}},
    }
    raw = '{"n":{"a":"' + "a" * 40 + 'b"}}'

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert (response.status_code, response.json()["code"]) == (422, "undecodable")


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ([{"a": 1}, {"a": 2}], True),
        ([{"a": 1, "b": [2]}, {"b": [2], "a": 1}], False),  # the order of members means nothing
        ([1, 1.0, "x"], False),  # one number, written twice
        ([1, True, "x"], True),
        ([{"a": 0}, {"a": False}], True),
        ([[1], ["1"]], True),
        ([{"a": n} for n in range(30_000)], True),  # in time in proportion to its length
    ],
)
def test_items_are_compared_as_json(owner: Door, value: object, accepted: bool) -> None:
    schema = {"type": "array", "uniqueItems": True, "minItems": 2}

    response = owner.post("/decode", {"raw": dump_json(value).decode(), "schema": schema})

    assert response.status_code == (200 if accepted else 422)


@pytest.mark.parametrize(
    ("choices", "value", "accepted"),
    [
        (["a", {"b": [1]}], {"b": [1.0]}, True),
        ([[1], "a"], [True], False),
        ([[None]], [None], True),
        ([{"n": n} for n in range(3_000)], {"n": 2_999}, True),
    ],
)
def test_choices_are_compared_as_json(
    owner: Door, choices: list[object], value: object, accepted: bool
) -> None:
    response = owner.post("/decode", {"raw": json.dumps(value), "schema": {"enum": choices}})

    assert response.status_code == (200 if accepted else 422)


def test_each_step_of_a_plan_may_choose_from_a_large_catalog(owner: Door) -> None:
    tool = {"enum": [f"pack.{n}" for n in range(5_000)]}
    schema = {"properties": {"steps": {"items": {"properties": {"tool": tool}}}}}
    raw = json.dumps({"steps": [{"tool": f"pack.{n}"} for n in range(200)]})

    response = owner.post("/decode", {"raw": raw, "schema": schema})

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("depth", "status"), [(150, 200), (200, 200), (201, 422), (900, 422), (9000, 422)]
)
@pytest.mark.parametrize("schema", [None, {"type": "array"}])
def test_a_deep_value_is_answered_alike_however_deep_its_caller_stands(
    owner: Door, depth: int, status: int, schema: object
) -> None:
    raw = "[" * depth + '"x"' + "]" * depth

    def ask(frames: int) -> int:
        return ask(frames - 1) if frames else _status(owner, {"raw": raw, "schema": schema})

    assert (ask(0), ask(300)) == (status, status)


@pytest.mark.parametrize("depth", [10, 150, 200, 900])
def test_a_schema_that_follows_a_deep_value_down_is_no_error_of_ours(
    owner: Door, depth: int
) -> None:
    raw = "[" * depth + '"x"' + "]" * depth

    assert _status(owner, {"raw": raw, "schema": {"items": {"$ref": "#"}}}) in (200, 422)


def _status(owner: Door, body: object) -> int:
    status: int = owner.post("/decode", body).status_code
    return status
