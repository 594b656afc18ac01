"""POST /assemble: its shape, whose budget counts, and every way to get it wrong."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from helmdash.api.openapi import examples
from helmdash.api.openapi.answer_types import answer_type
from helmdash.core.assembly.manifest import AssemblyManifest
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.text.tokens import Estimator
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget
from tests.api.conftest import Door, fields_of

CHUNK = {"id": "a", "text": "text", "source": "a.md"}
BODY: dict[str, Any] = {"system": "s", "user_query": "q", "chunks": [CHUNK]}


def table(project: ProjectInfo) -> BudgetTable:
    return budgets.table(project_id=project.id)


def test_the_example_gives_the_example(owner: Door) -> None:
    response = owner.post("/assemble", examples.ASSEMBLE_STRICT)

    assert response.status_code == 200
    assert response.json() == examples.ASSEMBLED


def test_the_line_of_the_how_to_works(owner: Door) -> None:
    page = Path("docs/assemble.md").read_text(encoding="utf-8")
    (body,) = re.findall(r"-d '(.*?)'\n", page, re.DOTALL)

    told = owner.post("/assemble", json.loads(body)).json()

    assert all(entry["included"] for entry in told["manifest"]["chunks"])


def test_the_answer_has_the_promised_shape_and_its_sums_are_true(owner: Door) -> None:
    told = owner.post("/assemble", examples.ASSEMBLE).json()

    manifest = told["manifest"]
    assert set(manifest) >= {
        "prompt_hash", "system_tokens", "instructions_tokens", "user_query_tokens",
        "context_tokens", "total_tokens", "budget_tokens", "within_budget", "chunks",
    }  # fmt: skip
    parts = ("system_tokens", "instructions_tokens", "user_query_tokens", "context_tokens")
    assert sum(manifest[name] for name in parts) == manifest["total_tokens"]
    assert manifest["total_tokens"] == Estimator().tokens(told["prompt"])
    assert manifest["prompt_hash"] == hashlib.sha256(told["prompt"].encode()).hexdigest()
    assert [entry["id"] for entry in manifest["chunks"]] == ["terms-4", "faq-1"]
    assert manifest["within_budget"] is True


@pytest.mark.parametrize("body", [examples.ASSEMBLE, examples.ASSEMBLE_STRICT])
def test_the_manifest_has_the_members_of_its_schema_and_no_others(
    owner: Door, body: dict[str, Any]
) -> None:
    manifest = owner.post("/assemble", body).json()["manifest"]

    adapter = TypeAdapter(answer_type(AssemblyManifest))
    assert adapter.dump_python(adapter.validate_python(manifest), mode="json") == manifest


# --- whose budget --------------------------------------------------------------------------------


def test_a_models_window_less_its_reserve_is_the_budget(owner: Door, project: ProjectInfo) -> None:
    row = table(project).lookup("openai/gpt-4o")
    assert row.limit_tokens is not None

    told = owner.post("/assemble", {**BODY, "model": "openai/gpt-4o"}).json()

    assert told["manifest"]["budget_tokens"] == row.limit_tokens - row.reserve_tokens
    assert told["budget"] == {
        "tokens": row.limit_tokens - row.reserve_tokens,
        "source": "context_length",
        "key": "openai/gpt-4o",
        "limit_tokens": row.limit_tokens,
        "reserve_tokens": row.reserve_tokens,
        "chars_per_token": 4.0,
        "safety_multiplier": 1.2,
    }


@pytest.mark.parametrize("model", [None, "", " ", "nobody/knows"])
def test_without_a_known_model_the_fallbacks_ceiling_counts(
    owner: Door, project: ProjectInfo, model: str | None
) -> None:
    fallback = table(project).lookup("")

    told = owner.post("/assemble", {**BODY, "model": model}).json()

    assert told["budget"]["source"] == "fallback"
    assert told["budget"]["key"] == ""
    expected = fallback.input_tokens - fallback.reserve_tokens
    assert told["manifest"]["budget_tokens"] == told["budget"]["tokens"] == expected


def test_a_budget_in_the_request_wins_even_over_a_smaller_window(owner: Door) -> None:
    body = {**BODY, "model": "ollama/llama3.1", "budget_tokens": 500_000}

    told = owner.post("/assemble", body).json()

    assert told["manifest"]["budget_tokens"] == 500_000
    assert (told["budget"]["source"], told["budget"]["limit_tokens"]) == ("request", None)


def test_a_models_own_factors_count_its_tokens(owner: Door, project: ProjectInfo) -> None:
    Budget.objects.filter(key="openai/gpt-4o").update(chars_per_token=2, safety_multiplier=1.5)
    budgets.forget_cache()

    told = owner.post("/assemble", {**BODY, "model": "openai/gpt-4o"}).json()

    estimator = Estimator(chars_per_token=2, safety_multiplier=1.5)
    assert told["manifest"]["total_tokens"] == estimator.tokens(told["prompt"])


@pytest.mark.parametrize(
    ("model", "key", "field"),
    [("openai/gpt-4o", "openai/gpt-4o", "model"), (None, "", "budget_tokens")],
)
def test_a_reserve_that_takes_the_whole_window_is_named(
    owner: Door, project: ProjectInfo, model: str | None, key: str, field: str
) -> None:
    Budget.objects.filter(key=key).update(reserve_tokens=10_000_000)
    budgets.forget_cache()

    response = owner.post("/assemble", {**BODY, "model": model})

    assert response.status_code == 422
    assert fields_of(response) == [field]
    assert "reserve_tokens" in response.json()["detail"]
    assert owner.post("/assemble", {**BODY, "model": model, "budget_tokens": 99}).status_code == 200


# --- over budget ---------------------------------------------------------------------------------


def test_fixed_parts_over_the_budget_are_refused_with_the_breakdown(owner: Door) -> None:
    body = {**BODY, "user_query": "中" * 100_000, "budget_tokens": 30_768}

    response = owner.post("/assemble", body)

    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    told = response.json()
    assert told["code"] == "over_budget"
    assert told["type"] == "/api/v1/docs#over_budget"
    assert told["estimated_tokens"] == 90_002  # "s", a blank line, the question
    assert told["budget_tokens"] == 30_768
    assert told["over_by"] == 59_234
    for number in ("90002", "30768", "59234", "user_query"):
        assert number in told["detail"]
    manifest = told["manifest"]
    TypeAdapter(answer_type(AssemblyManifest)).validate_python(manifest)
    assert (manifest["within_budget"], manifest["total_tokens"]) == (False, 90_002)
    assert manifest["chunks"][0]["reason"] == "over_budget"


def test_a_chunk_that_is_too_big_is_left_out_and_no_error(owner: Door) -> None:
    body = {**BODY, "chunks": [{**CHUNK, "text": "中" * 100_000}], "budget_tokens": 30_768}

    told = owner.post("/assemble", body).json()

    assert told["prompt"] == "s\n\nq"
    (entry,) = told["manifest"]["chunks"]
    assert (entry["included"], entry["reason"], entry["tokens"]) == (False, "over_budget", 90_000)
    assert entry["over_by"] > 0


# --- wrong ---------------------------------------------------------------------------------------


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"system": None}, "system"),
        ({"user_query": None}, "user_query"),
        ({"user_query": 5}, "user_query"),
        ({"instructions": []}, "instructions"),
        ({"chunks": None}, "chunks"),
        ({"chunks": {}}, "chunks"),
        ({"chunks": ["text"]}, "chunks.0"),
        ({"chunks": [{**CHUNK, "id": ""}]}, "chunks.0.id"),
        ({"chunks": [{**CHUNK, "id": 5}]}, "chunks.0.id"),
        ({"chunks": [{**CHUNK, "id": "x" * 513}]}, "chunks.0.id"),
        ({"chunks": [{"text": "t", "source": "s"}]}, "chunks.0.id"),
        ({"chunks": [CHUNK, {**CHUNK, "id": "b", "text": None}]}, "chunks.1.text"),
        ({"chunks": [{"id": "a", "text": "t"}]}, "chunks.0.source"),
        ({"chunks": [{**CHUNK, "score": "0.5"}]}, "chunks.0.score"),
        ({"chunks": [{**CHUNK, "score": True}]}, "chunks.0.score"),
        ({"chunks": [{**CHUNK, "text": "\x00"}]}, "chunks.0.text"),
        ({"chunks": [{**CHUNK, "provenance": []}]}, "chunks.0.provenance"),
        ({"chunks": [{**CHUNK, "provenance": {"page": -1}}]}, "chunks.0.provenance.page"),
        ({"chunks": [{**CHUNK, "provenance": {"page": "3"}}]}, "chunks.0.provenance.page"),
        ({"chunks": [{**CHUNK, "provenance": {"pag": 3}}]}, "chunks.0.provenance.pag"),
        ({"chunks": [{**CHUNK, "scor": 1}]}, "chunks.0.scor"),
        ({"chunks": [CHUNK, {**CHUNK, "id": "b"}, CHUNK]}, "chunks.2.id"),  # twice
        ({"chunks": [{**CHUNK, "id": str(n)} for n in range(10_001)]}, "chunks"),
        ({"mode": "strict"}, "mode"),
        ({"budget_tokens": 0}, "budget_tokens"),
        ({"budget_tokens": -1}, "budget_tokens"),
        ({"budget_tokens": 10.5}, "budget_tokens"),
        ({"model": 5}, "model"),
        ({"modle": "x"}, "modle"),
    ],
)
def test_what_is_wrong_is_named(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/assemble", {**BODY, **over})

    assert response.status_code == 422, response.content[:300]
    assert fields_of(response) == [field]


def test_both_of_two_chunks_with_one_id_are_named(owner: Door) -> None:
    response = owner.post("/assemble", {**BODY, "chunks": [CHUNK, CHUNK]})

    assert response.json()["errors"] == [
        {"field": "chunks.1.id", "message": "is the id of chunks.0, too (a); give each its own"}
    ]


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_score_that_is_no_finite_number_never_gets_in(owner: Door, number: bytes) -> None:
    """JSON has no such numbers, so the body is none."""
    body = (
        b'{"system":"s","user_query":"q","chunks":[{"id":"a","text":"t","source":"s","score":'
        + number + b"}]}"
    )  # fmt: skip

    assert owner.post("/assemble", body).status_code == 400


@pytest.mark.parametrize(
    "over",
    [
        {"chunks": []},
        {"instructions": None, "mode": None, "budget_tokens": None},
        {"system": "", "user_query": ""},
        {"chunks": [{**CHUNK, "text": ""}]},
        {"chunks": [{**CHUNK, "source": "", "score": None, "provenance": None}]},
        {"chunks": [{**CHUNK, "score": 5, "provenance": {"page": None, "offset_start": 3}}]},
        {"chunks": [{**CHUNK, "id": "line\nbreak \u2028"}], "mode": "strict_provenance"},
        {"chunks": [{**CHUNK, "id": str(n)} for n in range(10_000)]},
    ],
)
def test_what_is_odd_but_right_is_taken(owner: Door, over: dict[str, Any]) -> None:
    assert owner.post("/assemble", {**BODY, **over}).status_code == 200


def test_it_needs_the_scope_fit(door: Callable[..., Door]) -> None:
    assert door("fit").post("/assemble", BODY).status_code == 200
    refused = door("read", "record", "plan", "budgets").post("/assemble", BODY)
    assert refused.status_code == 403
    assert "fit" in refused.json()["detail"]
    assert Door(None).post("/assemble", BODY).status_code == 401
