"""POST /calls/batch and /calls/reconcile."""

from __future__ import annotations

import json
import timeit
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from helmdash.api.openapi import examples
from helmdash.api.parsing import validate
from helmdash.api.schemas.reports import CALL
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture
from helmdash.doors.bodies.jsontext import load_json
from helmdash.records.models import Project
from tests.api.conftest import Door, fields_of


def _call(n: int, **over: Any) -> dict[str, Any]:
    return {"id": f"c{n}", "conversation": "talk", "model": "openai/gpt-4o", **over}


def test_good_calls_are_stored_beside_bad_ones(owner: Door) -> None:
    calls: list[object] = [
        _call(0, usage={"prompt_tokens": 100}),
        {"id": "c1"},  # no model
        _call(2, conversation="no good"),
        "not an object",
        _call(0),  # known since the first line of this batch
        _call(5, usage={"prompt_tokens": 120_000}),
        None,
    ]

    response = owner.post("/calls/batch", {"calls": calls})

    assert response.status_code == 200
    told = response.json()
    assert (told["stored"], told["duplicates"]) == (2, 1)
    assert [(each["index"], each["errors"][0]["field"]) for each in told["rejected"]] == [
        (1, "model"),
        (2, "conversation"),
        (3, "body"),
        (6, "body"),
    ]
    assert [(each["index"], each["id"]) for each in told["results"]] == [
        (0, "c0"),
        (4, "c0"),
        (5, "c5"),
    ]
    assert told["results"][0]["level"] == "healthy"
    assert [each["id"] for each in owner.get("/calls").json()["items"]] == ["c5", "c0"]


def test_generations_follow_the_order_of_the_batch(owner: Door) -> None:
    owner.post("/calls/batch", {"calls": [_call(n) for n in range(30)]})

    items = owner.get("/conversations/talk/timeline").json()["items"]

    assert [(each["generation"], each["call_id"]) for each in items] == [
        (n + 1, f"c{n}") for n in range(30)
    ]


def test_a_repeated_batch_stores_nothing_twice(owner: Door) -> None:
    batch = {"calls": [_call(n) for n in range(10)]}
    owner.post("/calls/batch", batch)

    told = owner.post("/calls/batch", batch).json()

    assert (told["stored"], told["duplicates"], told["rejected"]) == (0, 10, [])
    assert owner.get("/conversations/talk").json()["generation"] == 10


def test_one_nul_rejects_one_call(owner: Door) -> None:
    calls = [_call(0), _call(1, metadata={"x": "\x00"}), _call(2, content="fine")]

    told = owner.post("/calls/batch", {"calls": calls}).json()

    assert told["stored"] == 2
    assert told["rejected"] == [
        {
            "index": 1,
            "is_too_old": False,
            "errors": [{"field": "metadata.x", "message": "must not contain the character U+0000"}],
        }
    ]


def test_an_empty_batch_is_fine(owner: Door) -> None:
    told = owner.post("/calls/batch", {"calls": []}).json()

    assert told == {"stored": 0, "duplicates": 0, "rejected": [], "results": []}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"calls": [{"model": "m"}] * 1001}, "calls"),  # one too many
        ({"calls": {"model": "m"}}, "calls"),  # not a list
        ({}, "calls"),
        ([{"model": "m"}], "body"),  # the list alone
        ({"calls": [], "call": []}, "call"),
    ],
)
def test_a_batch_that_is_none_is_refused(owner: Door, body: object, field: str) -> None:
    response = owner.post("/calls/batch", body)

    assert response.status_code == 422
    assert fields_of(response) == [field]


def test_a_thousand_calls_are_one_batch(owner: Door) -> None:
    calls = [_call(n, conversation=f"talk-{n % 7}") for n in range(1000)]

    told = owner.post("/calls/batch", {"calls": calls}).json()

    assert (told["stored"], told["rejected"]) == (1000, [])


def test_the_documented_example_is_accepted(owner: Door) -> None:
    told = owner.post("/calls/batch", examples.BATCH).json()

    assert (told["stored"], told["rejected"]) == (2, [])


def test_reconcile_tells_known_ids_from_missing_ones(owner: Door) -> None:
    owner.post("/calls/batch", {"calls": [_call(1), _call(2)]})

    told = owner.post("/calls/reconcile", {"ids": ["c2", "nope", "c1", "c2"]}).json()

    assert told == {"stored": ["c2", "c1"], "missing": ["nope"]}


@pytest.mark.parametrize(
    "body", [{"ids": "c1"}, {"ids": [1]}, {}, {"ids": ["x"] * 1001}, {"ids": [""]}]
)
def test_reconcile_refuses_what_are_no_ids(owner: Door, body: object) -> None:
    response = owner.post("/calls/reconcile", body)

    assert response.status_code == 422
    assert fields_of(response)[0].startswith("ids")


def test_reading_a_call_is_cheap() -> None:
    """As a ratio, since machines differ: within a few times what `json.loads` alone would take."""
    text = orjson.dumps(
        {
            **examples.CALL,
            "messages": [{"role": "user", "content": "x" * 700} for _ in range(6)],
            "metadata": {"run": "r", "step": 4},
        }
    )
    assert 4_500 < len(text) < 5_000

    def read() -> Capture:
        return to_capture(validate(load_json(text), CALL), route=CallRoute.API)

    reading = min(timeit.repeat(read, number=50))
    parsing = min(timeit.repeat(lambda: json.loads(text), number=50))
    assert reading < 6 * parsing


def test_what_a_transcript_tells_of_a_time_that_is_not_kept_stays_out(owner: Door) -> None:
    """A file that grew is read whole: what retention had deleted came back, and was counted once
    more among the figures that outlive it."""
    Project.objects.update(retention_days=60)
    now = timezone.now()
    told = [(route, days) for route in ("transcript", "api") for days in (61, 59)]
    calls = [
        _call(n, route=route, started_at=(now - timedelta(days=days)).isoformat())
        for n, (route, days) in enumerate(told)
    ]

    answer = owner.post("/calls/batch", {"calls": calls}).json()

    # Who reports a call by itself is told that it is stored, and it is.
    assert [each["id"] for each in answer["results"]] == ["c1", "c2", "c3"]
    assert answer["rejected"] == [
        {
            "index": 0,
            "is_too_old": True,
            "errors": [
                {"field": "started_at", "message": "is older than the project keeps its calls"}
            ],
        }
    ]
