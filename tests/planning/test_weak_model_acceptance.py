"""The case of helmdeck ADR 050: what failed on free models gives a plan, and one can see why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.planning import weak
from tests.support.server import Served
from tests.support.upstreams.scripted import ScriptedModel, run_scripted

FREE = ["openrouter/openrouter/free", "openrouter/z-ai/glm-4.5-air:free"]
STRONG = "openrouter/anthropic/claude-sonnet-4-6"


@dataclass(frozen=True, slots=True)
class Place:
    """A HelmDash with the weak model behind openrouter."""

    served: Served
    model: ScriptedModel
    api: httpx.Client

    def plan(self, **body: Any) -> httpx.Response:
        return self.api.post("/plan", json={"user_intent": weak.INTENT, **body}, timeout=60)


@pytest.fixture(scope="module")
def place(serve: Callable[..., Served]) -> Iterator[Place]:
    with run_scripted(weak.answer) as model:
        served = serve(
            OPENROUTER_API_KEY="sk-or-none-0123456789",
            OPENROUTER_BASE_URL=model.base_url,
            HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        )
        with httpx.Client(base_url=f"{served.base_url}/api/v1", headers=served.headers) as api:
            yield Place(served, model, api)


@pytest.mark.parametrize("model", FREE)
def test_the_full_catalog_gets_nothing_out_of_the_weak_model(place: Place, model: str) -> None:
    current = place.api.get("/catalogs").json()["items"][0]["name"]
    catalog = place.api.get(f"/catalogs/{current}").json()["catalog"]
    message = f"Plan this with the catalog {catalog}: {weak.INTENT}"
    answer = httpx.post(
        f"{place.served.base_url}/v1/chat/completions",
        json={"model": model, "messages": [{"role": "user", "content": message}]},
        headers={**place.served.headers, "x-helmdash-purpose": "plan"},
        timeout=30,
    )

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == ""
    call = place.api.get(f"/calls/{answer.headers['x-helmdash-call-id']}")
    assert call.status_code in (200, 404)  # the recorder commits some milliseconds later


@pytest.mark.parametrize("model", FREE)
def test_a_plan_on_a_free_model_names_the_right_first_tool(place: Place, model: str) -> None:
    answer = place.plan(model=model)

    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert plan["prompt_variant_used"] == "single_pick"
    assert [step["tool"] for step in plan["steps"]] == [*weak.FIRST]
    assert plan["complexity"] == "pack-chain"
    assert plan["more_steps_likely"] is True
    assert plan["compaction"]["fits"] is True
    assert plan["compaction"]["after_bytes"] <= 10_000


@pytest.mark.parametrize("model", FREE)
def test_every_call_of_a_plan_is_recorded_as_one_story(place: Place, model: str) -> None:
    plan = place.plan(model=model).json()

    stored = place.api.get(f"/plans/{plan['plan_id']}").json()
    assert [each["call_id"] for each in stored["attempts"]] == [
        each["call_id"] for each in plan["attempts"]
    ]
    for attempt in plan["attempts"]:
        call = place.api.get(f"/calls/{attempt['call_id']}").raise_for_status().json()
        assert call["correlation_id"] == plan["plan_id"]
        assert call["purpose"] == attempt["purpose"]
        assert call["attempt"] == attempt["number"]


def test_a_strong_model_sees_the_full_catalog_behind_the_same_prefix(place: Place) -> None:
    before = len(place.model.heard)
    whole = place.plan(model=STRONG).json()
    place.plan(model=STRONG, user_intent="Take a screenshot of github.com")
    heard = [each for each in place.model.heard[before:] if "claude" in each.model]

    assert "compaction" not in whole
    assert [step["order"] for step in whole["steps"]] == [1, 2]
    systems = {each.system for each in heard}
    assert len(heard) == 2
    assert len(systems) == 1
    assert systems.pop().count('"name":"') >= 73
    assert all("CATALOG" not in each.user for each in heard)
