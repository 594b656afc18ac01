"""Fit, rank, decode, and the catalogs they work on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.api.openapi import examples
from tests.api.conftest import Door, fields_of


def _compact(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _large_catalog() -> dict[str, Any]:
    return {
        "packs": [
            {
                "name": f"pack.{n}",
                "description": f"Does thing {n} with ünïcode. And more about it. " * 4,
                "metadata": {"intent_keywords": [f"thing{n}", "wörd"], "limitations": "x" * 90},
            }
            for n in range(120)
        ],
        "pipelines": [{"id": "both", "name": "Both", "metadata": {"supersedes": ["pack.1"]}}],
    }


def test_a_small_catalog_passes_through(owner: Door) -> None:
    response = owner.post("/fit", examples.FIT)

    assert response.status_code == 200
    told = response.json()
    assert told["catalog"] == examples.CATALOG
    assert told["fit_id"].startswith("fit_")
    compaction = told["compaction"]
    assert compaction["before_bytes"] == compaction["after_bytes"] == _compact(examples.CATALOG)
    assert (compaction["fits"], compaction["dropped"], compaction["removed"]) == (True, [], [])
    assert {each["id"] for each in compaction["kept"]} == {
        "web.scrape",
        "doc.summarize",
        "digest",
    }
    assert told["prompt_variant"] == told["budget"]["prompt_variant"]
    assert told["response_format"] in ("", "json_object")
    assert told["catalog_placement"] in ("system", "user")


def test_a_large_catalog_is_cut_and_the_receipt_is_true(owner: Door) -> None:
    catalog = _large_catalog()

    told = owner.post(
        "/fit", {"model": "nobody/knows", "intent": "do thing 77", "catalog": catalog}
    ).json()

    compaction = told["compaction"]
    assert compaction["before_bytes"] == _compact(catalog)
    assert compaction["after_bytes"] == _compact(told["catalog"]) <= 10_000
    assert compaction["dropped"] == [step["label"] for step in compaction["steps"]]
    named = {each["id"] for each in compaction["kept"] + compaction["removed"]}
    assert named == {f"pack.{n}" for n in range(120)} | {"both"}
    for each in compaction["kept"]:
        assert set(each) == {"id", "kind", "rank", "score", "history"}


def test_a_catalog_fits_into_the_window_that_a_refusal_told(owner: Door) -> None:
    """The row thinks 200,000 tokens safe; a server with less refused one that had its room."""
    model, catalog = "openai/gpt-4.1", _large_catalog()
    asked = {"model": model, "intent": "do thing 77", "catalog": catalog}
    assert owner.post("/fit", asked).json()["compaction"]["dropped"] == []
    refused = {
        "model": model,
        "usage": None,
        "status": "error",
        "http_status": 400,
        "error_message": "This model's maximum context length is 8192 tokens.",
    }
    assert owner.post("/calls", refused).status_code == 201

    told = owner.post("/fit", asked).json()

    budget, compaction = told["budget"], told["compaction"]
    assert (budget["input_tokens"], budget["limit_tokens"]) == (200_000, 8_192)
    assert compaction["fits"]
    assert compaction["before_bytes"] > 27_306  # 8,192 tokens by the estimator
    assert 0.85 * 27_306 <= compaction["after_bytes"] <= 27_306
    assert "pack.77" in [each["name"] for each in told["catalog"]["packs"]]


def test_the_same_fit_gives_the_same_bytes(owner: Door) -> None:
    body = {"model": "nobody/knows", "intent": "do thing 77", "catalog": _large_catalog()}

    one, two = owner.post("/fit", body).json(), owner.post("/fit", body).json()

    assert one["catalog"] == two["catalog"]
    assert one["fit_id"] != two["fit_id"]


def test_members_nobody_described_are_carried(owner: Door) -> None:
    catalog = {"packs": [{"name": "p", "zeta": [1, None], "n": 123456789012345678901234567890}],
               "version": 3}  # fmt: skip

    response = owner.post("/fit", {"model": "openai/gpt-4o", "intent": "x", "catalog": catalog})

    assert b'"n":123456789012345678901234567890' in response.content
    assert response.json()["catalog"] == catalog
    assert response.json()["compaction"]["before_bytes"] == _compact(catalog)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"intent": ""}, "intent"),
        ({"intent": "  "}, "intent"),
        ({"intent": None}, "intent"),
        ({"model": ""}, "model"),
        ({"catalog": []}, "catalog"),
        ({"catalog": "x"}, "catalog"),
        ({"catalog": {"packs": {}}}, "catalog.packs"),
        ({"catalog": {"packs": [{"name": "a"}, {}]}}, "catalog.packs.1.name"),
        ({"catalog": {"pipelines": [{"name": "a"}]}}, "catalog.pipelines.0.id"),
        ({"catalog": {"packs": [{"name": "a"}, {"name": "a"}]}}, "catalog.packs.1.name"),
        ({"catalog": None}, "catalog"),  # none given, none in force
        ({"catalog": None, "catalog_name": "nothing"}, "catalog_name"),
        ({"context": []}, "context"),
        ({"defaults": "x"}, "defaults"),
        ({"history": [{"intent": "x"}]}, "history.0.tools"),
        ({"history": [{"intent": "x", "tools": [1]}]}, "history.0.tools.0"),
        ({"catlog": {}}, "catlog"),
        ({"catalog": {"packs": [{"name": "a\x00"}]}}, "catalog.packs.0.name"),
    ],
)
def test_a_wrong_fit_names_the_field(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/fit", {**examples.FIT, **over})

    assert response.status_code == 422
    assert fields_of(response) == [field]


def test_context_and_defaults_take_room(owner: Door) -> None:
    body = {"model": "nobody/knows", "intent": "do thing 1", "catalog": _large_catalog()}

    alone = owner.post("/fit", body).json()["compaction"]["after_bytes"]
    crowded = owner.post("/fit", {**body, "context": {"page": "x" * 48_000}}).json()

    assert crowded["compaction"]["after_bytes"] < alone


def test_a_catalog_is_imported_once_and_then_revised(owner: Door) -> None:
    first = owner.put("/catalogs/mine", examples.CATALOG)
    again = owner.put("/catalogs/mine", examples.CATALOG)
    changed = owner.put("/catalogs/mine", {"packs": [{"name": "only"}]})

    assert (first.status_code, first.json()) == (
        201,
        {"name": "mine", "revision": 1, "is_new": True},
    )
    assert (again.status_code, again.json()["is_new"]) == (200, False)
    assert changed.json()["revision"] == 2
    told = owner.get("/catalogs/mine").json()
    assert (told["revision"], told["catalog"]) == (2, {"packs": [{"name": "only"}]})
    assert [each["revision"] for each in owner.get("/catalogs").json()["items"]] == [2, 1]


def test_an_imported_catalog_is_fitted_by_name_or_because_it_is_current(owner: Door) -> None:
    owner.put("/catalogs/mine", examples.CATALOG)
    owner.put("/catalogs/spare?current=false", {"packs": [{"name": "spare"}]})
    ask = {"model": "openai/gpt-4o", "intent": "scrape a page"}

    current = owner.post("/fit", ask).json()["catalog"]
    named = owner.post("/fit", {**ask, "catalog_name": "spare"}).json()["catalog"]
    ranked = owner.post("/rank", {"intent": "scrape", "catalog_name": "mine"}).json()["ranked"]

    assert current == examples.CATALOG
    assert named == {"packs": [{"name": "spare"}]}
    assert len(ranked) == 3


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/catalogs/no%20good", {"packs": []}, "name"),
        ("/catalogs/" + "n" * 121, {"packs": []}, "name"),
        ("/catalogs/mine", [], "catalog"),
        # In force, it would leave every fit without a tool.
        ("/catalogs/mine", {}, "catalog"),
        ("/catalogs/mine", {"packs": [{}]}, "catalog.packs.0.name"),
        ("/catalogs/mine?current=maybe", {"packs": []}, "current"),
        ("/catalogs/mine", {"packs": [{"name": "a", "x": "\x00"}]}, "packs.0.x"),
    ],
)
def test_a_wrong_import_names_the_field(owner: Door, path: str, body: object, field: str) -> None:
    response = owner.put(path, body)

    assert (response.status_code, fields_of(response)) == (422, [field])


def test_catalogs_belong_to_projects(owner: Door, stranger: Door) -> None:
    owner.put("/catalogs/mine", examples.CATALOG)

    assert stranger.get("/catalogs/mine").status_code == 404
    assert stranger.get("/catalogs").json()["items"] == []


def test_every_entry_is_ranked_best_first(owner: Door) -> None:
    ranked = owner.post("/rank", {"intent": "do thing 77", "catalog": _large_catalog()}).json()[
        "ranked"
    ]

    assert len(ranked) == 121
    assert ranked[0]["id"] == "pack.77"
    assert all(set(each) == {"id", "kind", "score", "lexical", "history"} for each in ranked)
    assert [each["score"] for each in ranked] == sorted(
        (each["score"] for each in ranked), reverse=True
    )


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"intent": " "}, "intent"),
        ({"catalog": None}, "catalog"),
        ({"catalog": None, "catalog_name": "nothing"}, "catalog_name"),
        ({"catalog": {"packs": [{"name": 5}]}}, "catalog.packs.0.name"),
        ({"model": "m"}, "model"),  # ranking knows no models
    ],
)
def test_a_wrong_ranking_names_the_field(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/rank", {**examples.RANK, **over})

    assert (response.status_code, fields_of(response)) == (422, [field])


def test_json_is_found_behind_thinking_and_fences(owner: Door) -> None:
    told = owner.post("/decode", examples.DECODE).json()

    assert told["value"] == {"steps": [1, 2]}
    assert told["partial"] is False
    assert told["stripped_bytes"] > 0
    assert isinstance(told["stage"], str)


def test_the_schema_chooses_among_values(owner: Door) -> None:
    raw = 'First {"a": 1}, then {"steps": []} was it.'
    schema = {"type": "object", "required": ["steps"]}

    told = owner.post("/decode", {"raw": raw, "schema": schema}).json()

    assert told["value"] == {"steps": []}


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"raw": "I am sorry.", "finish_reason": "stop"}, "undecodable"),
        ({"raw": "I cannot say", "finish_reason": "content_filter"}, "safety_filtered"),
        ({"raw": "<think>and then", "finish_reason": "length"}, "reasoning_exhausted"),
    ],
)
def test_what_cannot_be_decoded_has_a_cause(owner: Door, body: dict[str, Any], cause: str) -> None:
    response = owner.post("/decode", body)

    assert response.status_code == 422
    told = response.json()
    assert told["code"] == "undecodable"
    assert told["cause"]["name"] == cause
    assert set(told["cause"]) == {"name", "rule", "advice", "detail"}
    assert "errors" not in told


@pytest.mark.one_database
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},  # not a schema
        {"properties": 5},
        {"$ref": "https://example.org/schema.json"},  # remote
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},  # without end
        {"properties": {"a": {"pattern": "(?=x)"}}},  # no linear-time engine reads this
        {"patternProperties": {"^a": {}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_named(owner: Door, schema: dict[str, Any]) -> None:
    response = owner.post("/decode", {"raw": '{"a": "x"}', "schema": schema})

    assert (response.status_code, fields_of(response)) == (422, ["schema"])


def test_references_that_multiply_come_to_an_end(owner: Door) -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)} | {
        "l40": {}
    }
    schema = {"$defs": levels, "$ref": "#/$defs/l0"}

    response = owner.post("/decode", {"raw": "{}", "schema": schema})

    assert fields_of(response) == ["schema"]


def test_a_pattern_takes_linear_time(owner: Door) -> None:
    schema = {"properties": {"a": {"pattern": "^(a+)+$"}}}

    told = owner.post("/decode", {"raw": json.dumps({"a": "a" * 40 + "b"}), "schema": schema})

    assert told.status_code == 422
    assert told.json()["code"] == "undecodable"


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [({"raw": None}, "raw"), ({"raw": 5}, "raw"), ({"schema": []}, "schema"), ({"x": 1}, "x")],
)
def test_a_wrong_decode_names_the_field(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/decode", {"raw": "{}", **over})

    assert (response.status_code, fields_of(response)) == (422, [field])
