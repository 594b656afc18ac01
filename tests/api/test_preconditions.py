"""`If-Match`: what was edited since it was read is not overwritten, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.operations.budgets import editing
from helmdash.records.models import Budget
from tests.api.conftest import PREFIX, Door

BODIES: dict[str, Any] = {
    "PATCH": {"tier": "C"},
    "PUT": {"packs": [{"name": "another", "description": "Another one."}]},
}


@pytest.fixture(params=["PATCH budget", "DELETE budget", "PUT catalog", "DELETE conversation"])
def edit(request: pytest.FixtureRequest, owner: Door) -> tuple[str, str]:
    """A method, and the address of a thing that takes it and hands out an ETag."""
    method, what = request.param.split()
    if what == "budget":
        return method, f"/budgets/{owner.post('/budgets', examples.BUDGET).json()['id']}"
    if what == "catalog":
        owner.put("/catalogs/mine", examples.CATALOG)
        return method, "/catalogs/mine"
    owner.post("/calls", {"model": "m", "conversation": "alpha"})
    return method, "/conversations/alpha"


def _change_meanwhile(owner: Door, path: str) -> None:
    if path.startswith("/budgets"):
        owner.patch(path, {"input_tokens": 9_000})
    elif path.startswith("/catalogs"):
        owner.put(path, {"packs": [{"name": "theirs", "description": "Somebody else's."}]})
    else:
        owner.post("/calls", {"model": "m", "conversation": "alpha"})


def _send(owner: Door, edit: tuple[str, str], **headers: str) -> Any:
    method, path = edit
    return owner.send(method, path, BODIES.get(method, b""), **headers)


def test_what_changed_since_it_was_read_is_left_alone(owner: Door, edit: tuple[str, str]) -> None:
    path = edit[1]
    seen = owner.get(path)
    _change_meanwhile(owner, path)
    stands = owner.get(path)

    response = _send(owner, edit, if_match=seen["ETag"])

    body = response.json()
    assert (response.status_code, body["code"]) == (412, "precondition_failed")
    assert f"GET {PREFIX}{path}" in body["detail"]
    assert owner.get(path).content == stands.content
    assert _send(owner, edit, if_match=stands["ETag"]).status_code in (200, 201, 204)


@pytest.mark.parametrize(
    "said",
    # A proxy that compresses makes an ETag a weak one: what it is of is the same.
    ["{tag}", "W/{tag}", '"another", {tag}', "*"],
)
def test_what_is_as_it_was_read_is_edited(owner: Door, edit: tuple[str, str], said: str) -> None:
    tag = owner.get(edit[1])["ETag"]

    response = _send(owner, edit, if_match=said.format(tag=tag))

    assert response.status_code in (200, 201, 204), response.content


@pytest.mark.parametrize("said", ["nonsense", '"half', ""])
def test_a_guard_that_cannot_be_read_holds(owner: Door, edit: tuple[str, str], said: str) -> None:
    assert _send(owner, edit, if_match=said).status_code == 412


def test_an_answer_with_the_row_has_its_etag_for_the_next_edit(owner: Door) -> None:
    made = owner.post("/budgets", examples.BUDGET)
    path = f"/budgets/{made.json()['id']}"
    assert made["ETag"] == owner.get(path)["ETag"]

    first = owner.send("PATCH", path, {"tier": "C"}, if_match=made["ETag"])
    second = owner.send("PATCH", path, {"tier": "B"}, if_match=first["ETag"])
    late = owner.send("PATCH", path, {"tier": "A"}, if_match=first["ETag"])

    assert (first.status_code, second.status_code, late.status_code) == (200, 200, 412)
    assert owner.get(path).json()["tier"] == "B"


def test_an_edit_between_the_check_and_the_write_is_seen(
    owner: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = owner.post("/budgets", examples.BUDGET)
    number = made.json()["id"]
    change = editing.change_budget

    def meanwhile(**arguments: Any) -> Any:
        row = Budget.objects.get(pk=number)
        row.evidence = "somebody else's"
        row.save()
        return change(**arguments)

    monkeypatch.setattr(editing, "change_budget", meanwhile)

    late = owner.send("PATCH", f"/budgets/{number}", {"tier": "A"}, if_match=made["ETag"])

    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert owner.get(f"/budgets/{number}").json()["evidence"] == "somebody else's"


@pytest.mark.parametrize("path", ["/budgets/999999", "/catalogs/none", "/conversations/none"])
def test_of_what_is_not_there_no_etag_holds(owner: Door, path: str) -> None:
    method = {"budgets": "PATCH", "catalogs": "PUT", "conversations": "DELETE"}[path.split("/")[1]]

    response = _send(owner, (method, path), if_match="*")

    assert response.status_code == (404 if path.startswith("/budgets") else 412)


def test_a_guard_that_nothing_could_hold_is_refused_and_not_passed_over(owner: Door) -> None:
    owner.post("/calls", {"model": "m", "conversation": "alpha"})
    path = "/conversations/alpha/reminders"
    added = owner.post(path, examples.REMINDER).json()
    tag = owner.get(path)["ETag"]

    response = owner.send("PATCH", f"{path}/{added['id']}", {"content": "x"}, if_match=tag)

    assert (response.status_code, response.json()["code"]) == (412, "precondition_failed")
    assert "has no ETag" in response.json()["detail"]
    any_state = owner.send("PATCH", f"{path}/{added['id']}", {"content": "x"}, if_match="*")
    assert any_state.status_code == 200


def test_the_document_says_which_edits_take_if_match() -> None:
    takers = {
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
        if any(each["name"] == "If-Match" for each in operation["parameters"])
    }

    assert takers == {"change_budget", "delete_budget", "put_catalog", "erase_conversation"}
