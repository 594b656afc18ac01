"""What lists of models tell a client of windows: the budget's, in the words of each format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.providers.openai import with_codex_models
from helmdash.providers.protocols import ListedModel
from tests.gateway.test_local_models import wait_for
from tests.gateway.world import WINDOW_TOKENS, World

pytestmark = pytest.mark.xdist_group("gateway")

_OPENAI: dict[str, str] = {}
_ANTHROPIC = {"anthropic-version": "2023-06-01"}
_GEMINI = {"x-goog-api-key": "in the headers already"}
_LENGTHS = ("context_length", "context_window", "max_model_len")


def _models(listed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    entries = listed.get("data") or listed["models"]
    return {each.get("id") or each["name"]: each for each in entries}


@pytest.mark.parametrize(
    ("path", "headers", "known", "sizes"),
    [
        (
            "/v1/models",
            _OPENAI,
            "openai/gpt-plain",
            {**dict.fromkeys(_LENGTHS, WINDOW_TOKENS), "max_output_tokens": 4000},
        ),
        (
            "/v1/models",
            _ANTHROPIC,
            "anthropic/claude-plain",
            {"max_input_tokens": WINDOW_TOKENS, "max_tokens": 4000},
        ),
        (
            "/v1beta/models",
            _OPENAI,
            "models/gemini/gemini-plain",
            {"inputTokenLimit": WINDOW_TOKENS, "outputTokenLimit": 4000},
        ),
    ],
)
def test_lists_tell_the_window_of_the_budget(
    world: World, path: str, headers: dict[str, str], known: str, sizes: dict[str, int]
) -> None:
    def told() -> dict[str, Any] | None:
        found = _models(world.http.get(path, headers=headers).json())[known]
        return found if sizes.items() <= found.items() else None

    # The rows were made a moment ago, and hold within a second; until then the fallback does.
    listed = wait_for(told)
    one = world.http.get(f"{path}/{known.removeprefix('models/')}", headers=headers).json()

    for entry in (listed, one):
        assert {name: entry[name] for name in sizes} == sizes
    missing = world.http.get(f"{path}/nobody/of-that-name", headers=headers)
    assert missing.status_code == 404


def test_an_edited_budget_is_soon_in_the_list(world: World) -> None:
    row = {
        "key": "openai/gpt-plain",
        "input_tokens": 3000,
        "output_tokens": 700,
        "tier": "A",
        "context_length": 5000,
        "evidence": "what the test is about",
    }
    made = world.api.post("/budgets", json=row)
    assert made.status_code == 201, made.text

    def told() -> dict[str, Any] | None:
        found = _models(world.http.get("/v1/models").json())["openai/gpt-plain"]
        return found if found["context_length"] != WINDOW_TOKENS else None

    try:
        found = wait_for(told)
    finally:
        world.api.delete(f"/budgets/{made.json()['id']}")

    assert [found[name] for name in (*_LENGTHS, "max_output_tokens")] == [5000] * 3 + [700]


def test_what_is_not_known_of_a_model_is_left_out() -> None:
    models = [
        ListedModel(name="up/known", owner="up", window=9000, output_tokens=500, compacts_at=8100),
        ListedModel(name="up/other", owner="up"),
    ]

    told = json.loads(with_codex_models(b'{"object": "list", "data": []}', models))

    known, other = told["models"]
    assert (known["context_window"], known["auto_compact_token_limit"]) == (9000, 8100)
    assert not {"context_window", "auto_compact_token_limit"} & set(other)
    assert told["data"] == []
