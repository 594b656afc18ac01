"""Budgets over the API: reading, explaining, editing."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.api.openapi import examples
from helmdash.records.models import Budget
from tests.api.conftest import Door, fields_of

FIGURES = {
    "key", "input_tokens", "output_tokens", "max_catalog_bytes", "tier", "allows_llm_filter",
    "filter_model", "fallback_model", "is_hybrid_reasoning", "wants_strict_json",
    "supports_prefix_cache", "cached_input_cost_usd_per_mtok", "prompt_variant", "context_length",
    "input_length", "optimal_max_tokens", "critical_max_tokens", "caution_cadence",
    "chars_per_token", "safety_multiplier", "reserve_tokens", "evidence", "enabled",
}  # fmt: skip


def _by_key(owner: Door) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in owner.get("/budgets", {"limit": "500"}).json()["items"]}


def _fallback(owner: Door) -> dict[str, Any]:
    return _by_key(owner)[""]


def _history(budget_id: int) -> list[tuple[str, str | None]]:
    rows = Budget.history.filter(id=budget_id).order_by("history_id")
    return [(row.history_type, row.history_change_reason) for row in rows]


def test_a_row_has_every_member(owner: Door) -> None:
    rows = _by_key(owner)

    assert len(rows) > 29
    for row in rows.values():
        assert set(row) >= FIGURES | {"id", "project", "updated_at"}
    assert owner.get(f"/budgets/{rows['']['id']}").json() == rows[""]


@pytest.mark.parametrize(
    ("model", "rule", "key"),
    [
        ("openai/gpt-4o", "exact", "openai/gpt-4o"),
        ("  OpenAI/GPT-4o ", "exact", "openai/gpt-4o"),  # trimmed, any case
        ("openai/gpt-4o-2024-11-20", "prefix", "openai/gpt-4o"),
        ("openai/gpt-4o:free", "free_suffix", "openai/gpt-4o"),
        ("nobody/knows", "fallback", ""),
        ("", "fallback", ""),
        ("nobody/knows:free", "fallback", ""),
    ],
)
def test_a_lookup_is_explained(owner: Door, model: str, rule: str, key: str) -> None:
    told = owner.get("/budgets/resolve", {"model": model}).json()

    assert told["model"] == model.strip()
    assert (told["matched"]["rule"], told["matched"]["key"]) == (rule, key)
    assert told["matched"]["budget_id"] == _by_key(owner)[key]["id"]
    assert set(told["budget"]) >= FIGURES | {"limit_tokens"}
    (winner,) = [each for each in told["candidates"] if each["won"]]
    assert winner["rule"] == rule
    assert all(set(each) == {"key", "rule", "won", "why"} for each in told["candidates"])
    assert told["candidates"][-1]["rule"] == "fallback"


def test_every_shipped_row_resolves_to_itself(owner: Door) -> None:
    for key, row in _by_key(owner).items():
        told = owner.get("/budgets/resolve", {"model": key}).json()

        assert told["matched"]["budget_id"] == row["id"], key
        assert told["budget"]["input_tokens"] == row["input_tokens"]
        assert told["budget"]["prompt_variant"] in ("full_steps", "single_pick")
        assert told["budget"]["caution_cadence"] is not None
        assert told["budget"]["optimal_max_tokens"] is not None


def test_a_free_route_is_tier_c_whatever_the_row_says(owner: Door) -> None:
    budget = owner.get("/budgets/resolve", {"model": "openai/gpt-4o:free"}).json()["budget"]

    assert (budget["tier"], budget["max_catalog_bytes"]) == ("C", 10_000)
    assert budget["allows_llm_filter"] is True
    assert budget["wants_strict_json"] is False


def test_context_budgets_are_the_seeds_projection(owner: Door) -> None:
    told = owner.get("/context-budgets").json()

    assert set(told) == {"fetched_at", "fallback", "budgets", "policy"}
    assert told["fallback"]["model"] == ""
    assert (told["fallback"]["tier"], told["fallback"]["input_tokens"]) == ("C", 16_000)
    assert told["fallback"]["max_catalog_bytes"] == 10_000
    by_model = {entry["model"]: entry for entry in told["budgets"]}
    assert {entry["tier"] for entry in told["budgets"]} == {"A", "B", "C"}
    assert all(e["max_catalog_bytes"] == 0 for e in told["budgets"] if e["tier"] == "A")
    assert all(entry["prompt_variant"] for entry in told["budgets"])
    o3_mini = by_model["openai/o3-mini"]
    assert o3_mini["is_hybrid_reasoning"]
    assert o3_mini["wants_strict_json"]
    assert o3_mini["supports_prefix_cache"]
    assert o3_mini["cached_input_cost_usd_per_mtok"] > 0


def test_a_new_budget_rules_the_next_lookup_and_call(owner: Door) -> None:
    call = {"model": "acme/model-1-large", "usage": {"prompt_tokens": 31_000}}
    before = owner.post("/calls", call).json()["health"]

    response = owner.post("/budgets", examples.BUDGET)

    assert response.status_code == 201
    row = response.json()
    assert response["Location"] == f"/api/v1/budgets/{row['id']}"
    assert (row["key"], row["project"], row["prompt_variant"]) == (
        "acme/model-1",
        "default",
        None,
    )
    told = owner.get("/budgets/resolve", {"model": "acme/model-1-large"}).json()
    assert (told["matched"]["rule"], told["budget"]["limit_tokens"]) == ("prefix", 32_768)
    assert before["reason"] == "model_limit_unavailable"
    assert owner.post("/calls", call).json()["health"]["level"] == "critical"
    assert _history(row["id"]) == [("+", "API key owner")]


def test_a_change_touches_only_what_it_names(owner: Door) -> None:
    row = owner.post("/budgets", examples.BUDGET).json()

    changed = owner.patch(f"/budgets/{row['id']}", {"tier": "C", "input_tokens": 9_000}).json()

    assert changed["updated_at"] >= row["updated_at"]
    assert {**changed, "updated_at": None} == {
        **row,
        "tier": "C",
        "input_tokens": 9_000,
        "updated_at": None,
    }
    assert _history(row["id"])[-1] == ("~", "API key owner")


@pytest.mark.parametrize("lengths", [(200_000, 96_000), (96_000, 200_000)])
def test_the_smaller_of_the_two_lengths_is_the_limit(owner: Door, lengths: tuple[int, int]) -> None:
    window, longest = lengths
    given = {**examples.BUDGET, "context_length": window, "input_length": longest}
    given = {**given, "optimal_max_tokens": None, "critical_max_tokens": None}
    row = owner.post("/budgets", given)

    told = owner.get("/budgets/resolve", {"model": "acme/model-1"}).json()["budget"]

    smaller = "context_length" if window < longest else "input_length"
    assert row.status_code == 201, row.content
    assert (told["limit_tokens"], told["limit_source"]) == (96_000, smaller)


# helmdeck's table says "" where a row has no variant of its own
@pytest.mark.parametrize("no_variant", [None, ""])
def test_null_resets_a_member_to_its_default(owner: Door, no_variant: str | None) -> None:
    given = {**examples.BUDGET, "prompt_variant": "single_pick", "optimal_max_tokens": 9_000}
    row = owner.post("/budgets", given).json()
    assert (row["prompt_variant"], row["optimal_max_tokens"]) == ("single_pick", 9_000)

    reset = owner.patch(
        f"/budgets/{row['id']}", {"prompt_variant": no_variant, "optimal_max_tokens": None}
    ).json()

    assert (reset["prompt_variant"], reset["optimal_max_tokens"]) == (None, None)


def test_a_deleted_budget_leaves_its_models_to_the_next_best(owner: Door) -> None:
    row = owner.post("/budgets", {**examples.BUDGET, "key": "openai/gpt-4o-special"}).json()

    assert owner.delete(f"/budgets/{row['id']}").status_code == 204

    assert owner.get(f"/budgets/{row['id']}").status_code == 404
    assert owner.delete(f"/budgets/{row['id']}").status_code == 404
    told = owner.get("/budgets/resolve", {"model": "openai/gpt-4o-special"}).json()
    assert told["matched"]["key"] == "openai/gpt-4o"
    assert _history(row["id"])[-1] == ("-", "API key owner")


def test_the_fallback_stays(owner: Door) -> None:
    path = f"/budgets/{_fallback(owner)['id']}"

    deleted = owner.delete(path)
    disabled = owner.patch(path, {"enabled": False})
    renamed = owner.patch(path, {"key": "acme/"})

    assert (deleted.status_code, fields_of(deleted)) == (409, ["key"])
    assert (disabled.status_code, fields_of(disabled)) == (422, ["enabled"])
    assert (renamed.status_code, fields_of(renamed)) == (422, ["key"])
    assert owner.patch(path, {"input_tokens": 12_000}).status_code == 200
    assert owner.patch(path, {"key": " "}).status_code == 200


@pytest.mark.parametrize("key", ["openai/gpt-4o", "OpenAI/GPT-4o", " openai/gpt-4o ", ""])
def test_a_key_is_taken_once(owner: Door, key: str) -> None:
    response = owner.post("/budgets", {**examples.BUDGET, "key": key, "project": None})

    assert response.status_code == 409
    assert response.json()["code"] == "conflict"
    assert fields_of(response) == ["key"]


# SQLite's own LOWER knows the small letters of ASCII only, PostgreSQL's none for some capitals.
@pytest.mark.parametrize(("key", "again"), [("Élan/x", "élan/X"), ("İpek/x", "i̇pek/x")])
def test_a_key_is_taken_once_in_letters_beyond_ascii_too(owner: Door, key: str, again: str) -> None:
    given = {**examples.BUDGET, "project": None}
    assert owner.post("/budgets", {**given, "key": key}).status_code == 201

    taken = owner.post("/budgets", {**given, "key": again})
    of_one_project = owner.post("/budgets", {**examples.BUDGET, "key": again})

    assert (taken.status_code, fields_of(taken)) == (409, ["key"])
    assert of_one_project.status_code == 201


def test_renaming_onto_another_row_is_a_conflict(owner: Door) -> None:
    given = {**examples.BUDGET, "project": None}
    row = owner.post("/budgets", given).json()

    response = owner.patch(f"/budgets/{row['id']}", {"key": "openai/gpt-4o"})

    assert (response.status_code, fields_of(response)) == (409, ["key"])


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"input_tokens": 0}, "input_tokens"),
        ({"input_tokens": "9000"}, "input_tokens"),
        ({"output_tokens": -1}, "output_tokens"),
        ({"output_tokens": 2**53 + 1}, "output_tokens"),
        ({"max_catalog_bytes": -1}, "max_catalog_bytes"),
        ({"tier": "D"}, "tier"),
        ({"tier": None}, "tier"),
        ({"prompt_variant": "both"}, "prompt_variant"),
        ({"enabled": "yes"}, "enabled"),
        ({"cached_input_cost_usd_per_mtok": -0.1}, "cached_input_cost_usd_per_mtok"),
        ({"chars_per_token": 0}, "chars_per_token"),
        ({"safety_multiplier": 0.5}, "safety_multiplier"),
        ({"caution_cadence": 0}, "caution_cadence"),
        ({"key": "k" * 256}, "key"),
        ({"key": "a\nb"}, "key"),
        ({"filter_model": "k" * 256}, "filter_model"),
        ({"fallback_model": "k" * 256}, "fallback_model"),
        # optimal below critical, critical within the limit
        ({"optimal_max_tokens": 20_000, "critical_max_tokens": 20_000}, "optimal_max_tokens"),
        ({"optimal_max_tokens": 30_000}, "optimal_max_tokens"),
        ({"critical_max_tokens": 40_000}, "critical_max_tokens"),
        ({"inputtokens": 1}, "inputtokens"),
        ({"project": "elsewhere"}, "project"),  # another project than the key's
    ],
)
def test_a_wrong_member_is_named(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/budgets", {**examples.BUDGET, **over})

    assert response.status_code == 422, response.content
    assert fields_of(response) == [field]
    assert "acme/model-1" not in _by_key(owner)


def test_a_key_with_the_suffix_of_a_window_would_govern_nothing(owner: Door) -> None:
    refused = owner.post("/budgets", {**examples.BUDGET, "key": "acme/model-1[1m]"})
    assert owner.post("/budgets", {**examples.BUDGET, "key": "acme/model-1"}).status_code == 201

    told = owner.get("/budgets/resolve", {"model": "acme/model-1[1m]"}).json()

    assert (refused.status_code, fields_of(refused)) == (422, ["key"])
    assert refused.json()["errors"][0]["message"] == (
        "Leave [1m] out: it names no model of its own, so the row would govern nothing. "
        "The row acme/model-1 governs acme/model-1[1m], too."
    )
    assert told["matched"]["key"] == "acme/model-1"


@pytest.mark.parametrize("member", ["key", "input_tokens", "output_tokens", "tier"])
def test_a_new_budget_needs_its_figures(owner: Door, member: str) -> None:
    given = {name: value for name, value in examples.BUDGET.items() if name != member}

    assert fields_of(owner.post("/budgets", given)) == [member]


def test_a_row_of_the_keys_project_beats_the_global_one(owner: Door, stranger: Door) -> None:
    given = {**examples.BUDGET, "key": "openai/gpt-4o", "project": "elsewhere"}

    row = stranger.post("/budgets", given).json()

    theirs = stranger.get("/budgets/resolve", {"model": "openai/gpt-4o"}).json()
    ours = owner.get("/budgets/resolve", {"model": "openai/gpt-4o"}).json()
    assert theirs["matched"]["budget_id"] == row["id"]
    assert ours["matched"]["budget_id"] != row["id"]
    assert row["project"] == "elsewhere"
    # Nobody else sees or touches it.
    assert owner.get(f"/budgets/{row['id']}").status_code == 404
    assert owner.patch(f"/budgets/{row['id']}", {"tier": "A"}).status_code == 404
    assert owner.delete(f"/budgets/{row['id']}").status_code == 404


def test_a_projects_own_fallback_may_go_again(stranger: Door) -> None:
    given = {**examples.BUDGET, "key": "", "project": "elsewhere"}
    row = stranger.post("/budgets", given).json()

    assert stranger.delete(f"/budgets/{row['id']}").status_code == 204


def test_the_project_of_a_row_does_not_change(stranger: Door) -> None:
    row = stranger.post("/budgets", {**examples.BUDGET, "project": "elsewhere"}).json()

    assert fields_of(stranger.patch(f"/budgets/{row['id']}", {"project": None})) == ["project"]


def test_a_disabled_row_is_listed_and_rules_nothing(owner: Door) -> None:
    row = owner.post("/budgets", {**examples.BUDGET, "enabled": False}).json()

    told = owner.get("/budgets/resolve", {"model": "acme/model-1"}).json()

    assert _by_key(owner)["acme/model-1"]["id"] == row["id"]
    assert told["matched"]["rule"] == "fallback"
    assert any(each["key"] == "acme/model-1" and not each["won"] for each in told["candidates"])


def test_many_ids_resolve_quickly(owner: Door, django_assert_max_num_queries: Any) -> None:
    # Two each; the table is read again each second, on a busy machine several times in here.
    with django_assert_max_num_queries(50 * 3):
        for n in range(50):
            told = owner.get("/budgets/resolve", {"model": f"openrouter/vendor-{n}/m"}).json()
            assert told["model"] == f"openrouter/vendor-{n}/m"
