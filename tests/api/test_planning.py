"""Plans and routes through the door, by a model that is simulated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from helmdash import conf
from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from tests.api import planner as simulated
from tests.api.conftest import PREFIX, Door, fields_of
from tests.api.planner import INTENT, Planner, run_planner
from tests.support.server import Served
from tests.support.upstreams.fleet import KEYS


def _ask(behaviour: str = "plan", **over: Any) -> dict[str, Any]:
    return {
        "user_intent": INTENT,
        "model": f"{simulated.NAME}/gpt-{behaviour}",
        "catalog": examples.CATALOG,
        "prompt_variant": "full_steps",
        **over,
    }


def _is_documented(path: str, status: str, body: object, method: str = "post") -> None:
    responses = document()["paths"][PREFIX + path][method]["responses"]
    (content,) = responses[status]["content"].values()
    schema = {**content["schema"], "components": document()["components"]}
    Draft202012Validator(schema).validate(body)


def test_a_plan_names_entries_of_the_catalog(owner: Door, planner: Planner) -> None:
    response = owner.post("/plan", _ask())

    assert response.status_code == 200
    told = response.json()
    assert [step["tool"] for step in told["steps"]] == ["web.scrape", "doc.summarize"]
    assert [step["order"] for step in told["steps"]] == [1, 2]
    assert told["steps"][0]["args"] == {"url": simulated.URL}
    assert told["complexity"] == "pack-chain"
    assert told["model"] == "sim/gpt-plan"
    assert told["prompt_variant_used"] in ("full_steps", "single_pick")
    assert "compaction" not in told
    assert [attempt["purpose"] for attempt in told["attempts"]] == ["plan"]
    _is_documented("/plan", "200", told)


def test_the_call_of_a_plan_is_recorded_as_its_own(owner: Door, planner: Planner) -> None:
    told = owner.post("/plan", _ask()).json()

    call = owner.get(f"/calls/{told['attempts'][0]['call_id']}").json()

    assert (call["purpose"], call["correlation_id"]) == ("plan", told["plan_id"])
    assert (call["caller"], call["model"]) == ("owner", "sim/gpt-plan")
    assert call["usage"]["prompt_tokens"] == 1200


def test_a_route_names_one_entry(owner: Door, planner: Planner) -> None:
    response = owner.post("/route", _ask("route"))

    assert response.status_code == 200
    told = response.json()
    assert (told["recommendation"]["kind"], told["recommendation"]["id"]) == ("pipeline", "digest")
    assert [each["id"] for each in told["alternatives"]] == ["web.scrape"]
    _is_documented("/route", "200", told)


def test_what_the_catalog_lacks_is_a_gap(owner: Door, planner: Planner) -> None:
    told = owner.post("/plan", _ask("gap")).json()

    assert [step["tool"] for step in told["steps"]] == ["web.scrape", "unknown"]
    assert told["steps"][1]["gap"]["asked"] == "video.dub"
    assert told["gap_warning"]["steps"] == [2]
    _is_documented("/plan", "200", told)


def test_single_pick_gives_a_step_and_goes_on(owner: Door, planner: Planner) -> None:
    first = owner.post("/plan", _ask("pick", prompt_variant="single_pick")).json()

    assert (len(first["steps"]), first["more_steps_likely"]) == (1, True)
    assert first["prompt_variant_used"] == "single_pick"
    _is_documented("/plan", "200", first)

    again = owner.post(
        "/plan", _ask("pick", prompt_variant="single_pick", continues=first["plan_id"])
    )

    # The model names the step that was just taken.
    assert again.status_code == 502
    assert again.json()["cause"]["name"] == "empty_plan"


def test_the_intent_the_catalog_and_the_limit_reach_the_model(
    owner: Door, planner: Planner
) -> None:
    owner.post("/plan", _ask("plan.reach", max_tokens=777, context={"tone": "dry"}))

    (seen,) = planner.server.seen("gpt-plan.reach")
    assert 777 in (seen.json.get("max_tokens"), seen.json.get("max_completion_tokens"))
    text = "".join(str(message["content"]) for message in seen.json["messages"])
    for word in (INTENT, "web.scrape", "dry"):
        assert word in text


@pytest.mark.parametrize(
    ("behaviour", "cause", "advice"),
    [
        ("prose", "undecodable", None),  # no JSON in the reply, however it is asked
        ("empty", "empty_completion", None),  # a 200 with nothing
        ("filtered", "safety_filtered", "surface"),
        ("locked", "auth_failed", "fix_credentials"),  # 401
    ],
)
def test_a_failure_is_a_502_with_its_cause(
    owner: Door,
    planner: Planner,
    behaviour: str,
    cause: str,
    advice: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = owner.post("/plan", _ask(behaviour))

    assert response.status_code == 502
    assert response["Content-Type"] == "application/problem+json"
    told = response.json()
    assert (told["code"], told["cause"]["name"]) == ("plan_failed", cause)
    assert told["detail"] == told["cause"]["detail"]
    assert advice in (None, told["cause"]["advice"])
    assert told["attempts"][-1]["cause"] == told["cause"]
    assert 1 <= len(told["attempts"]) <= 3
    _is_documented("/plan", "502", told)
    # One line, by which the plan is found, and none of `Bad Gateway`.
    (said,) = [record.getMessage() for record in caplog.records if record.name != "httpx"]
    rule, calls = told["cause"]["rule"], len(told["attempts"])
    assert said == f"{told['plan_id']} failed: {cause} (rule {rule}; calls made: {calls})"
    kept = owner.get(f"/plans/{told['plan_id']}").json()
    assert (kept["status"], kept["outcome"], kept["plan"]) == ("failed", "failed", None)
    assert kept["cause"] == told["cause"]
    assert len(kept["attempts"]) == len(told["attempts"])


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"user_intent": None}, "user_intent"),
        ({"user_intent": ""}, "user_intent"),
        ({"user_intent": " \n"}, "user_intent"),
        ({"user_intent": ["a"]}, "user_intent"),
        ({"model": ""}, "model"),
        ({"model": "  "}, "model"),
        ({"model": None}, "model"),  # no default is set
        ({"model": 4}, "model"),
        ({"model": "x" * 256}, "model"),
        ({"model": "a\nb"}, "model"),
        ({"model": "nowhere/gpt-plan"}, "model"),  # no upstream has this name
        ({"model": "gpt-nobody-lists"}, "model"),
        ({"context": "none"}, "context"),
        ({"context": []}, "context"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": "500"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 1_000_001}, "max_tokens"),
        ({"catalog": None}, "catalog"),  # and the project has none in force
        ({"catalog": {"packs": [], "pipelines": []}}, "catalog"),
        ({"catalog": None, "catalog_name": "missing"}, "catalog_name"),
        ({"catalog_name": "a b"}, "catalog_name"),
        ({"prompt_variant": "all_steps"}, "prompt_variant"),
        ({"continues": "plan_of_nobody"}, "continues"),
        ({"user_intentt": "x"}, "user_intentt"),  # not known
        ({"context": {"a": "\x00"}}, "context.a"),
    ],
)
def test_a_wrong_field_is_named(
    owner: Door, planner: Planner, over: dict[str, Any], field: str
) -> None:
    for path in ("/plan", "/route"):
        response = owner.post(path, _ask(**over))

        assert response.status_code == 422, response.content
        assert fields_of(response) == [field]
    # Nothing was asked of a model, so there is nothing to keep.
    assert owner.get("/plans").json()["items"] == []


def test_a_missing_field_and_each_fault_of_a_catalog_are_named(
    owner: Door, planner: Planner
) -> None:
    assert fields_of(owner.post("/plan", {"model": "sim/gpt-plan"})) == ["user_intent"]
    twice = {"packs": [{"name": "a"}, {"name": "a"}, {"title": "x"}]}
    assert len(fields_of(owner.post("/plan", _ask(catalog=twice)))) == 2


def test_a_query_is_refused(owner: Door, planner: Planner) -> None:
    assert fields_of(owner.post("/plan?wait=1", _ask())) == ["wait"]


def test_the_model_may_be_left_out_where_a_default_is_set(
    owner: Door, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up = conf.env().model_copy(update={"default_model": "sim/gpt-plan"})
    monkeypatch.setattr(conf, "env", lambda: set_up)
    ask = _ask()
    del ask["model"]

    assert owner.post("/plan", ask).json()["model"] == "sim/gpt-plan"


def test_without_a_server_async_is_answered_with_the_plan(owner: Door, planner: Planner) -> None:
    response = owner.post("/plan", _ask(), Prefer="respond-async")

    assert response.status_code == 200
    assert "Preference-Applied" not in response
    assert len(response.json()["steps"]) == 2


@pytest.fixture(scope="module")
def behind() -> Iterator[Planner]:
    """The models behind the served HelmDash."""
    with run_planner() as planner:
        yield planner


@pytest.fixture(scope="module")
def house(serve: Callable[..., Served], behind: Planner) -> Served:
    """A HelmDash whose upstream `openai` is the simulated one."""
    return serve(
        OPENAI_API_KEY=KEYS["openai"],
        OPENAI_BASE_URL=behind.base_url,
        HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        HELMDASH_DEFAULT_MODEL="openai/gpt-plan",
    )


@pytest.fixture(scope="module")
def client(house: Served) -> Iterator[httpx.Client]:
    """A client of its API."""
    with ExitStack() as stack:
        yield stack.enter_context(
            httpx.Client(
                base_url=house.base_url, headers=house.headers, timeout=30, trust_env=False
            )
        )


def _when_over(client: httpx.Client, address: str) -> dict[str, Any]:
    """What a poll tells as soon as the plan does not run any more."""
    deadline = time.monotonic() + 20
    while (told := client.get(address).raise_for_status().json())["status"] == "running":
        assert time.monotonic() < deadline, "the plan never came to an end"
        time.sleep(0.02)
    found: dict[str, Any] = told
    return found


def _served_ask(behaviour: str, **over: Any) -> dict[str, Any]:
    return _ask(behaviour, **over) | {"model": f"openai/gpt-{behaviour}"}


def test_a_server_plans_with_its_own_connections(client: httpx.Client) -> None:
    ask = _served_ask("plan")
    del ask["model"]

    response = client.post(f"{PREFIX}/plan", json=ask)

    assert response.status_code == 200, response.text
    assert response.json()["model"] == "openai/gpt-plan"


def test_a_plan_in_the_background_is_asked_for_by_its_address(
    client: httpx.Client, behind: Planner
) -> None:
    behind.gate.clear()

    begun = client.post(
        f"{PREFIX}/plan",
        json=_served_ask("slow.polled"),
        headers={"Prefer": "wait=5, Respond-Async;x=1"},
    )

    assert begun.status_code == 202, begun.text
    assert begun.headers["Preference-Applied"] == "respond-async"
    body = begun.json()
    assert (body["status"], body["progress"]) == ("running", 0)
    address = begun.headers["Location"]
    assert address == f"{PREFIX}/plans/{body['plan_id']}"
    _is_documented("/plan", "202", body)
    behind.server.wait_for("gpt-slow.polled")
    during = client.get(address).json()
    assert (during["status"], during["outcome"], during["plan"]) == ("running", "running", None)
    assert 0 <= during["progress"] < 100
    _is_documented("/plans/{plan_id}", "200", during, "get")

    behind.gate.set()
    after = _when_over(client, address)

    assert (after["status"], after["progress"]) == ("done", 100)
    assert after["plan"]["plan_id"] == body["plan_id"]
    assert len(after["plan"]["steps"]) == 2


def test_a_failure_in_the_background_is_told_when_asked(
    client: httpx.Client, behind: Planner
) -> None:
    prefers = {"Prefer": "respond-async"}
    begun = client.post(f"{PREFIX}/route", json=_served_ask("filtered"), headers=prefers)

    told = _when_over(client, begun.headers["Location"])

    assert (told["status"], told["kind"]) == ("failed", "route")
    assert told["cause"]["name"] == "safety_filtered"


def test_a_model_that_nobody_serves_fails_in_the_background_with_the_sentence(
    client: httpx.Client,
) -> None:
    ask = _served_ask("plan") | {"model": "nowhere/model"}
    begun = client.post(f"{PREFIX}/plan", json=ask, headers={"Prefer": "respond-async"})

    assert begun.status_code == 202
    told = _when_over(client, begun.headers["Location"])
    assert told["status"] == "failed"
    assert "nowhere/model" in told["problem"]


def test_a_wrong_field_is_told_at_once_in_the_background_as_well(client: httpx.Client) -> None:
    response = client.post(
        f"{PREFIX}/plan",
        json=_served_ask("plan", continues="plan_of_nobody"),
        headers={"Prefer": "respond-async"},
    )

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "continues"


def test_a_key_that_is_revoked_meanwhile_pays_for_no_further_question(
    house: Served, client: httpx.Client, behind: Planner
) -> None:
    """A reply without a plan is asked for anew, three times at most."""
    behind.gate.clear()
    made = house.manage("apikey", "create", "--name", "lost", "--scopes", "plan").stdout
    (key,) = (line for line in made.splitlines() if line.startswith("hd_"))
    begun = client.post(
        f"{PREFIX}/plan",
        json=_served_ask("late.revoked"),
        headers={"Prefer": "respond-async", "Authorization": f"Bearer {key}"},
    )
    behind.server.wait_for("gpt-late.revoked")

    house.manage("apikey", "revoke", "lost")
    behind.gate.set()
    told = _when_over(client, begun.headers["Location"])

    assert told["status"] == "failed"
    assert told["problem"] == "Whoever asked for this may not plan here any more."
    assert len(told["attempts"]) == 1
    assert len(behind.server.seen("gpt-late.revoked")) == 1


def test_a_client_that_leaves_does_not_take_the_record_with_it(
    client: httpx.Client, behind: Planner
) -> None:
    behind.gate.clear()
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"{PREFIX}/plan", json=_served_ask("slow.left"), timeout=0.5)
    (seen,) = behind.server.wait_for("gpt-slow.left")
    query = {"model": "openai/gpt-slow.left"}
    (running,) = client.get(f"{PREFIX}/plans", params=query).json()["items"]
    assert running["outcome"] == "running"

    behind.gate.set()
    told = _when_over(client, f"{PREFIX}/plans/{running['id']}")

    assert (told["status"], told["outcome"]) == ("done", "ok")
    assert not seen.hung_up.is_set()
    call = client.get(f"{PREFIX}/calls/{told['attempts'][0]['call_id']}").json()
    assert call["status"] == "success"
