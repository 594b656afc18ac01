"""Plan history: the list and its filters, one plan, what came of it, and a caller's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator

from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.records.models import PlanRecord, Project
from tests import factories
from tests.api.conftest import PREFIX, Door, fields_of
from tests.api.planner import INTENT, Planner

READS = ("/plans", "/plans/{plan_id}", "/my-plans", "/my-defaults")


def _make(door: Door, behaviour: str = "plan", path: str = "/plan", **over: Any) -> Any:
    ask = {
        "user_intent": INTENT,
        "model": f"sim/gpt-{behaviour}",
        "catalog": examples.CATALOG,
        "prompt_variant": "full_steps",
        **over,
    }
    return door.post(path, ask).json()


@pytest.fixture
def made(owner: Door, planner: Planner) -> list[str]:
    """The ids of four: a plan, one with a gap, a route, and one that failed. Texts are kept."""
    Project.objects.update(payload="full")
    planner_key = Door(factories.make_key(name="agent", scopes=("plan",)))
    return [
        _make(owner)["plan_id"],
        _make(planner_key, "gap", user_intent="Dub it")["plan_id"],
        _make(owner, "route", "/route")["plan_id"],
        _make(owner, "filtered")["plan_id"],
    ]


def _validate(path: str, body: object) -> None:
    operation = document()["paths"][PREFIX + path]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document()["components"]}).validate(body)


def _ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [item["id"] for item in response.json()["items"]]


def test_plans_are_listed_newest_first(owner: Door, made: list[str]) -> None:
    told = owner.get("/plans").json()

    assert [item["id"] for item in told["items"]] == made[::-1]
    assert told["next"] is None
    _validate("/plans", told)
    item = told["items"][-1]
    assert (item["kind"], item["intent"], item["model"]) == ("plan", INTENT, "sim/gpt-plan")
    assert (item["outcome"], item["steps"], item["gaps"]) == ("ok", 2, 0)
    assert item["tools"] == ["web.scrape", "doc.summarize"]
    assert (item["caller"], item["cause"], item["followed"]) == ("owner", None, None)
    assert item["before_bytes"] == item["after_bytes"] > 0


FILTERS: tuple[tuple[dict[str, str], list[int]], ...] = (
    ({"model": "sim/gpt-gap"}, [1]),
    ({"variant": "full_steps", "outcome": "gap"}, [1]),
    ({"outcome": "ok"}, [2, 0]),
    ({"outcome": "failed"}, [3]),
    ({"outcome": "running"}, []),
    ({"kind": "route"}, [2]),
    ({"tool": "web.scrape"}, [1, 0]),
    ({"tool": "digest"}, [2]),
    ({"caller": "agent"}, [1]),
    ({"q": "dub"}, [1]),
    ({"since": "2026-01-01T00:00:00Z"}, [3, 2, 1, 0]),
    ({"until": "2026-01-01T00:00:00Z"}, []),
    ({"model": "", "tool": "", "caller": "", "q": ""}, [3, 2, 1, 0]),  # empty: left out
)


def test_filters_narrow_the_list(owner: Door, made: list[str]) -> None:
    for query, found in FILTERS:
        assert _ids(owner.get("/plans", query)) == [made[at] for at in found], query


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"outcome": "great"}, "outcome"),
        ({"variant": "both"}, "variant"),
        ({"kind": "walk"}, "kind"),
        ({"since": "yesterday"}, "since"),
        ({"limit": "501"}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"modell": "x"}, "modell"),
    ],
)
def test_a_wrong_filter_is_named(owner: Door, query: dict[str, str], field: str) -> None:
    response = owner.get("/plans", query)

    assert response.status_code == 422
    assert fields_of(response) == [field]


def test_the_list_goes_on_where_it_ended(owner: Door, made: list[str]) -> None:
    first = owner.get("/plans", {"limit": "3"}).json()
    rest = owner.get("/plans", {"limit": "3", "cursor": first["next"]}).json()

    found = [item["id"] for item in first["items"] + rest["items"]]
    assert found == made[::-1]
    assert rest["next"] is None


def test_one_plan_tells_everything(owner: Door, made: list[str]) -> None:
    told = owner.get(f"/plans/{made[0]}").json()

    _validate("/plans/{plan_id}", told)
    assert (told["status"], told["progress"], told["steps"]) == ("done", 100, 2)
    assert told["plan"]["plan_id"] == made[0]
    first, second = told["step_details"]
    assert (first["order"], first["entry"], first["kind"]) == (1, "web.scrape", "pack")
    assert first["args"] == {"url": "https://example.com/post"}
    assert len(first["args_sha"]) == 16
    assert second["rationale"] == "Make it short."
    (attempt,) = told["attempts"]
    assert (attempt["purpose"], attempt["cause"]) == ("plan", None)
    assert attempt["system_sha"]
    assert told["catalog"] == examples.CATALOG
    assert told["compaction"]["fits"] is True
    assert {each["id"] for each in told["compaction"]["kept"]} == {
        "web.scrape", "doc.summarize", "digest",
    }  # fmt: skip
    assert told["finished_at"]
    # The same request once more, as a route.
    assert made[2] in {each["id"] for each in told["similar"]}


def test_a_gap_has_no_entry_and_says_what_was_asked(owner: Door, made: list[str]) -> None:
    told = owner.get(f"/plans/{made[1]}").json()

    gap = told["step_details"][1]
    assert (gap["entry"], gap["kind"], gap["asked"]) == (None, None, "video.dub")
    assert gap["gap"]
    assert (told["gaps"], told["outcome"]) == (1, "gap")


def test_a_route_is_one_step_of_its_kind(owner: Door, made: list[str]) -> None:
    told = owner.get(f"/plans/{made[2]}").json()

    _validate("/plans/{plan_id}", told)
    (step,) = told["step_details"]
    assert (step["entry"], step["kind"]) == ("digest", "pipeline")
    assert told["plan"]["recommendation"]["id"] == "digest"


def test_steps_of_the_same_work_are_a_chain(owner: Door, planner: Planner) -> None:
    first = _make(owner, "pick", prompt_variant="single_pick")
    other = _make(owner, "plan", prompt_variant="single_pick", continues=first["plan_id"])

    told = owner.get(f"/plans/{first['plan_id']}").json()

    assert [link["id"] for link in told["chain"]] == [first["plan_id"], other["plan_id"]]
    assert told["chain"][1]["continues"] == first["plan_id"]


def test_a_project_that_keeps_no_texts_shows_none(owner: Door, planner: Planner) -> None:
    Project.objects.update(payload="off")

    told = owner.get(f"/plans/{_make(owner)['plan_id']}").json()

    _validate("/plans/{plan_id}", told)
    assert (told["intent"], told["plan"]) == (None, None)
    assert len(told["intent_sha"]) == 16
    assert [step["entry"] for step in told["step_details"]] == ["web.scrape", "doc.summarize"]
    assert [step["args"] for step in told["step_details"]] == [None, None]
    assert "example.com" not in owner.get(f"/plans/{told['id']}").content.decode()


@pytest.mark.parametrize("plan_id", ["nobody", "plan_1", "a%00b", "%F0%9F%9B%B0"])
def test_an_unknown_plan_is_a_404(owner: Door, plan_id: str) -> None:
    for response in (
        owner.get(f"/plans/{plan_id}"),
        owner.post(f"/plans/{plan_id}/feedback", {"followed": True}),
    ):
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"


def test_projects_do_not_see_each_others_plans(
    owner: Door, stranger: Door, made: list[str]
) -> None:
    assert _ids(stranger.get("/plans")) == []
    assert stranger.get(f"/plans/{made[0]}").status_code == 404
    assert stranger.get("/my-plans").json()["groups"] == []
    told = stranger.post(f"/plans/{made[0]}/feedback", {"followed": True})
    assert told.status_code == 404
    assert owner.get(f"/plans/{made[0]}").json()["followed"] is None


def test_what_is_said_last_about_a_plan_holds(owner: Door, made: list[str]) -> None:
    for followed in (True, False):
        response = owner.post(f"/plans/{made[0]}/feedback", {"followed": followed})

        assert response.status_code == 200
        assert response.json() == {"id": made[0], "followed": followed}
        assert owner.get(f"/plans/{made[0]}").json()["followed"] is followed


@pytest.mark.parametrize("body", [{}, {"followed": None}, {"followed": "yes"}, {"followed": 1}])
def test_feedback_is_true_or_false(owner: Door, body: dict[str, Any]) -> None:
    assert fields_of(owner.post("/plans/whichever/feedback", body)) == ["followed"]


def test_my_plans_are_those_of_the_key(
    owner: Door, door: Callable[..., Door], made: list[str]
) -> None:
    mine = owner.get("/my-plans").json()
    others = Door(factories.make_key(name="newcomer", scopes=("read",))).get("/my-plans").json()

    _validate("/my-plans", mine)
    assert mine["scope"] == "caller=owner"
    (group,) = mine["groups"]
    assert (group["count"], group["models"]) == (1, ["sim/gpt-plan"])
    assert group["top_tools"] == ["doc.summarize", "web.scrape"]
    assert group["complexity"] == "pack-chain"
    assert "note" not in mine
    _validate("/my-plans", others)
    assert (others["scope"], others["groups"]) == ("caller=newcomer", [])
    assert others["note"]


def test_my_defaults_are_those_of_the_key(owner: Door, made: list[str]) -> None:
    mine = owner.get("/my-defaults").json()
    others = Door(factories.make_key(name="newcomer", scopes=("read",))).get("/my-defaults").json()

    _validate("/my-defaults", mine)
    assert mine["scope"] == "caller=owner"
    assert {each["id"]: each["calls"] for each in mine["packs"]} == {
        "web.scrape": 1,
        "doc.summarize": 1,
    }
    assert [(each["id"], each["runs"]) for each in mine["pipelines"]] == [("digest", 1)]
    _validate("/my-defaults", others)
    assert (others["packs"], others["pipelines"]) == ([], [])
    assert others["note"]


def test_a_read_that_did_not_change_costs_no_body(owner: Door, made: list[str]) -> None:
    addresses = [path.format(plan_id=made[0]) for path in READS]
    tags = {address: owner.get(address)["ETag"] for address in addresses}

    for address in addresses:
        again = owner.get(address, If_None_Match=tags[address])
        assert (again.status_code, again.content) == (304, b""), address
    owner.post(f"/plans/{made[0]}/feedback", {"followed": False})
    for address in ("/plans", f"/plans/{made[0]}"):
        assert owner.get(address, If_None_Match=tags[address]).status_code == 200


# Each has one more for the key.
QUERIES = (
    ("/plans", 1 + 2),  # the plans, the tools of all of them
    ("/plans?tool=web.scrape&q=read&outcome=ok", 1 + 2),
    # Itself, its chain, steps, attempts, fit, catalog; and what is like it: its sketch, the
    # sketches of others, those that are near, their tools.
    ("/plans/{plan_id}", 1 + 6 + 4),
    ("/my-plans", 1 + 2),  # the plans, their steps
    ("/my-defaults", 1 + 2),  # the steps of plans, the calls of packs
)


def test_reads_take_a_fixed_number_of_queries(
    owner: Door, made: list[str], django_assert_num_queries: Any
) -> None:
    for path, queries in QUERIES:
        with django_assert_num_queries(queries):
            assert owner.get(path.format(plan_id=made[0])).status_code == 200


def test_a_plan_whose_server_was_stopped_reads_as_failed(owner: Door, made: list[str]) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    PlanRecord.objects.filter(name=made[0]).update(outcome="running", started_at=long_ago)

    told = owner.get(f"/plans/{made[0]}").json()

    assert (told["status"], told["outcome"], told["cause"]) == ("failed", "failed", None)
    assert told["problem"]
