"""`Idempotency-Key`: every POST that creates, once; its first answer again; nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from helmdash.api import idempotency
from helmdash.api.leases import Leases
from helmdash.api.routes import ROUTES
from helmdash.operations import idempotency as kept_answers
from helmdash.records.models import Budget, Call, KeptAnswer, PlanRecord, Reminder
from tests.api.conftest import Door
from tests.api.planner import Planner
from tests.factories import make_key
from tests.pages.conftest import CATALOG

# They only compute or look up: sending them again costs nothing but time.
COMPUTING = {"/calls/reconcile", "/assemble", "/rank", "/decode"}
CALL = {"model": "m", "conversation": "talk"}
BUDGET = {"key": "acme/", "input_tokens": 9_000, "output_tokens": 900, "tier": "C"}
# A request of each kind that the database alone can answer.
REQUESTS: dict[str, tuple[str, Any]] = {
    "call": ("/calls", CALL),
    "batch": ("/calls/batch", {"calls": [CALL, CALL]}),
    "budget": ("/budgets", BUDGET),
    "advance": ("/conversations/talk/advance", {}),
    "clear": ("/conversations/talk/clear", {}),
    "reminder": ("/conversations/talk/reminders", {"content": "Mind the gap."}),
    "fit": ("/fit", {"model": "m", "intent": "x", "catalog": CATALOG}),
}
# The database's clock is known to within milliseconds.
SECOND = timedelta(seconds=1)
KEYED = {"Idempotency_Key": "one"}


def rows() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Call, Budget, Reminder, PlanRecord))


def test_every_post_either_honours_the_header_or_only_computes() -> None:
    posts = {route.path: route.once is not None for route in ROUTES if route.method == "POST"}

    assert {path for path, honours in posts.items() if not honours} == COMPUTING
    assert not [route.path for route in ROUTES if route.method != "POST" and route.once]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeat_gets_the_first_answer_and_does_nothing(name: str, owner: Door) -> None:
    owner.post("/calls", {**CALL, "id": "before", "usage": {"prompt_tokens": 10}})
    path, body = REQUESTS[name]
    first = owner.post(path, body, **KEYED)
    assert 200 <= first.status_code < 300, first.content
    before = rows()

    again = owner.post(path, body, **KEYED)

    assert rows() == before
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Content-Type"] == first["Content-Type"]
    assert again.get("Location") == first.get("Location")
    assert (first.get("Idempotency-Replayed"), again["Idempotency-Replayed"]) == (None, "true")
    # Another value is another request; the same value with another body is a mistake.
    assert owner.post(path, {**body, "nonsense": 1}, **KEYED).status_code == 422
    assert "Idempotency-Replayed" not in owner.post(path, body, Idempotency_Key="two")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", [{}, {"Prefer": "respond-async"}])
def test_a_plan_is_paid_once(way: dict[str, str], owner: Door, planner: Planner) -> None:
    body = {"user_intent": "write a blog post", "model": "sim/gpt-plan", "catalog": CATALOG}
    first = owner.post("/plan", body, **KEYED, **way)
    again = owner.post("/plan", body, **KEYED, **way)

    assert first.status_code in (200, 202), first.content
    assert again.content == first.content
    assert again.get("Location") == first.get("Location")
    assert PlanRecord.objects.count() == 1


def test_it_belongs_to_one_key_and_one_path(owner: Door, stranger: Door) -> None:
    for door, path in ((owner, "talk"), (owner, "walk"), (stranger, "talk")):
        door.post("/calls", {**CALL, "id": path, "conversation": path})
        body = {"content": f"a note of {path} {door.key}"}
        answer = door.post(f"/conversations/{path}/reminders", body, **KEYED)
        assert (answer.status_code, answer.get("Idempotency-Replayed")) == (201, None)

    assert Reminder.objects.count() == 3


@pytest.mark.parametrize(
    ("path", "body", "keeps"),
    [
        ("/calls", {**CALL, "id": "a"}, False),
        ("/calls/batch", {"calls": [{**CALL, "id": "a"}]}, False),
        # One without an id would be stored twice.
        ("/calls/batch", {"calls": [{**CALL, "id": "a"}, CALL]}, True),
        ("/calls", {**CALL, "id": None}, True),
    ],
)
def test_an_id_in_the_body_rules_over_it(path: str, body: Any, keeps: bool, owner: Door) -> None:
    first, again = owner.post(path, body, **KEYED), owner.post(path, body, **KEYED)

    assert (again.get("Idempotency-Replayed") == "true") is keeps
    assert KeptAnswer.objects.exists() is keeps
    if not keeps:
        # Also with another body: the id says which call is meant.
        changed = json.loads(json.dumps(body).replace('"m"', '"other"'))
        assert owner.post(path, changed, **KEYED).status_code == 200
    assert first.status_code in (200, 201)


@pytest.mark.parametrize(
    "value", ["", " ", "x" * 256, "caf\xe9", "tab\there", "\x7f"], ids=range(6)
)
def test_a_value_that_cannot_be_one_is_named(value: str, owner: Door) -> None:
    answer = owner.post("/budgets", BUDGET, Idempotency_Key=value)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "Idempotency-Key"
    assert not Budget.objects.filter(key="acme/").exists()


def test_only_good_answers_are_kept(owner: Door) -> None:
    assert owner.post("/budgets", {**BUDGET, "tier": "?"}, **KEYED).status_code == 422
    assert not KeptAnswer.objects.exists()

    assert owner.post("/budgets", BUDGET, **KEYED).status_code == 201


def test_what_is_kept_cannot_be_read_in_the_database(owner: Door) -> None:
    owner.post("/calls", {**CALL, "id": "first"})
    owner.post("/conversations/talk/reminders", {"content": "a secret plan"}, **KEYED)

    row = KeptAnswer.objects.get()
    everything = " ".join(str(value) for value in vars(row).values())
    assert "secret" not in everything
    assert "one" not in everything.split()


def test_it_is_kept_for_a_day(owner: Door) -> None:
    first = owner.post("/calls", CALL, **KEYED)
    row = KeptAnswer.objects.get()
    left = row.expires_at - timezone.now()
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24) + SECOND

    KeptAnswer.objects.update(expires_at=timezone.now() - SECOND)
    again = owner.post("/calls", {**CALL, "model": "other"}, **KEYED)

    assert (again.status_code, "Idempotency-Replayed" in again) == (201, False)
    assert again.json()["id"] != first.json()["id"]


def test_an_answer_that_is_too_large_is_not_given_again_and_nothing_done_twice(
    owner: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "MOST_BYTES", 10)
    owner.post("/calls", CALL, **KEYED)

    again = owner.post("/calls", CALL, **KEYED)

    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert Call.objects.count() == 1


def test_nothing_of_an_erased_conversation_is_given_again(owner: Door, stranger: Door) -> None:
    for door in (owner, stranger):
        door.post("/calls", {**CALL, "id": "first"})
        door.post("/conversations/talk/reminders", {"content": "a secret"}, **KEYED)

    assert owner.delete("/conversations/talk").status_code == 200

    again = owner.post("/conversations/talk/reminders", {"content": "a secret"}, **KEYED)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert sorted(bool(row.sealed) for row in KeptAnswer.objects.all()) == [False, True]


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_once_one_is_carried_out(owner: Door) -> None:
    barrier = threading.Barrier(8)

    def post(_: int) -> Any:
        barrier.wait()
        try:
            return owner.post("/calls", CALL, **KEYED)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(post, range(8)))

    assert Call.objects.count() == 1
    assert {each.status_code for each in answers} <= {201, 409}
    good = [each for each in answers if each.status_code == 201]
    assert len({each.content for each in good}) == 1
    assert sum("Idempotency-Replayed" not in each for each in good) == 1
    for each in answers:
        if each.status_code == 409:
            assert 1 <= int(each["Retry-After"]) <= 5


def test_after_a_crash_it_is_refused_until_the_lease_is_over(owner: Door) -> None:
    # What a process leaves that is killed while it carries a request out.
    owner.post("/calls", CALL, **KEYED)
    KeptAnswer.objects.update(
        status=None, sealed="", expires_at=timezone.now() + kept_answers.LEASE
    )

    assert owner.post("/calls", CALL, **KEYED).status_code == 409
    KeptAnswer.objects.update(expires_at=timezone.now() - SECOND)
    assert owner.post("/calls", CALL, **KEYED).status_code == 201


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_host_whose_clock_is_another_carries_nothing_out_twice(
    minutes: int, owner: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.post("/calls", CALL, **KEYED)
    KeptAnswer.objects.update(
        status=None, sealed="", expires_at=timezone.now() + kept_answers.LEASE
    )
    ahead, now = timedelta(minutes=minutes), timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + ahead)

    assert owner.post("/calls", CALL, **KEYED).status_code == 409
    KeptAnswer.objects.update(expires_at=now() - SECOND)
    assert owner.post("/calls", CALL, **KEYED).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_a_request_that_takes_long_keeps_its_lease(
    owner: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_leases", Leases(every_s=0.01))
    renewed = threading.Event()

    def watch(claims: Any, *, now: Any) -> None:
        kept_answers.renew(claims, now=now)
        renewed.set()

    monkeypatch.setattr("helmdash.api.leases.renew", watch)
    key_id = kept_key(owner)
    claim = kept_answers.claim(
        key_id=key_id, path="/p", value="v", body=b"", now=timezone.now() - kept_answers.LEASE
    )
    assert isinstance(claim, kept_answers.Claim)
    with idempotency._leases.holding(claim):
        assert renewed.wait(10)

    with pytest.raises(kept_answers.InProgress):
        kept_answers.claim(key_id=key_id, path="/p", value="v", body=b"", now=timezone.now())


def test_a_lease_that_no_other_connection_sees_is_not_renewed(owner: Door) -> None:
    # Renewing would wait for the transaction, and this thread's next write for the renewal.
    def threads() -> set[int | None]:
        return {thread.ident for thread in threading.enumerate() if thread.name == "leases"}

    before = threads()
    with Leases().holding(kept_answers.Claim(1, "token")):
        assert threads() <= before


def kept_key(owner: Door) -> int:
    from helmdash.records.models import ApiKey

    return ApiKey.objects.get(name="owner").pk


def test_what_is_over_is_deleted(owner: Door) -> None:
    for n in range(3):
        owner.post("/calls", CALL, Idempotency_Key=str(n))
    now = timezone.now() - SECOND
    KeptAnswer.objects.filter(request_sha__gt="8").update(expires_at=now)
    left = KeptAnswer.objects.filter(expires_at__gt=now).count()

    assert kept_answers.forget_kept(now=now) == 3 - left
    assert KeptAnswer.objects.count() == left


def test_the_document_tells_of_it(door: Callable[..., Door]) -> None:
    operation = door("read").get("/openapi.json").json()["paths"]["/api/v1/calls"]["post"]

    (header,) = [each for each in operation["parameters"] if each["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", False)
    assert "409" in operation["responses"]
    assert "Idempotency-Replayed" in operation["responses"]["201"]["headers"]


def test_a_person_and_another_key_have_none(owner: Door) -> None:
    other = Door(make_key(name="other", scopes=("record",)))
    first, second = owner.post("/calls", CALL, **KEYED), other.post("/calls", CALL, **KEYED)

    assert first.json()["id"] != second.json()["id"]
