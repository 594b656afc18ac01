"""Who may call which route. Every route of the OpenAPI has a row here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.doors.limits import KeyLimits
from helmdash.operations.access import keys
from helmdash.queries.access.access import SCOPES, ProjectInfo, api_keys, find_project
from tests.api.conftest import PREFIX, Door
from tests.factories import sign_in

ANY_KEY = None
# operation -> the scope it takes, how to call it, and a status that shows it was let in
ROUTES: dict[str, tuple[str | None, str, str, object, int]] = {
    "record_call": ("record", "POST", "/calls", examples.CALL, 201),
    "record_batch": ("record", "POST", "/calls/batch", examples.BATCH, 200),
    "reconcile_calls": ("read", "POST", "/calls/reconcile", examples.RECONCILE, 200),
    "list_calls": ("read", "GET", "/calls", None, 200),
    "export_calls": ("read", "GET", "/calls/export", None, 200),
    "get_call": ("read", "GET", "/calls/nobody", None, 404),
    "claude_code_hook": (
        "record",
        "POST",
        "/hooks/claude-code",
        {"session_id": "s", "hook_event_name": "SessionEnd"},
        200,
    ),
    "list_conversations": ("read", "GET", "/conversations", None, 200),
    "get_conversation": ("read", "GET", "/conversations/nobody", None, 404),
    "get_timeline": ("read", "GET", "/conversations/nobody/timeline", None, 404),
    "advance_conversation": (
        "record",
        "POST",
        "/conversations/nobody/advance",
        examples.ADVANCE,
        200,
    ),
    "clear_conversation": ("record", "POST", "/conversations/nobody/clear", {}, 404),
    "go_on": ("record", "POST", "/conversations/nobody/go-on", None, 404),
    "list_reminders": ("read", "GET", "/conversations/nobody/reminders", None, 404),
    "add_reminder": (
        "record",
        "POST",
        "/conversations/nobody/reminders",
        examples.REMINDER,
        404,
    ),
    "change_reminder": ("record", "PATCH", "/conversations/nobody/reminders/none", {}, 404),
    "erase_conversation": ("admin", "DELETE", "/conversations/nobody", None, 200),
    "delete_reminder": ("record", "DELETE", "/conversations/nobody/reminders/none", None, 404),
    "fit": ("fit", "POST", "/fit", examples.FIT, 200),
    "rank": ("fit", "POST", "/rank", examples.RANK, 200),
    "decode_reply": ("fit", "POST", "/decode", examples.DECODE, 200),
    "assemble": ("fit", "POST", "/assemble", examples.ASSEMBLE, 200),
    # The examples name a model that nobody serves here: whoever gets that far was let in.
    "plan": ("plan", "POST", "/plan", examples.PLAN, 422),
    "route_intent": ("plan", "POST", "/route", examples.ROUTE, 422),
    "list_trims": ("read", "GET", "/trims", None, 200),
    "list_plans": ("read", "GET", "/plans", None, 200),
    "get_plan": ("read", "GET", "/plans/nobody", None, 404),
    "record_feedback": ("record", "POST", "/plans/nobody/feedback", examples.FEEDBACK, 404),
    "get_my_plans": ("read", "GET", "/my-plans", None, 200),
    "get_my_defaults": ("read", "GET", "/my-defaults", None, 200),
    "list_catalogs": ("read", "GET", "/catalogs", None, 200),
    "get_catalog": ("read", "GET", "/catalogs/nothing", None, 404),
    "put_catalog": ("admin", "PUT", "/catalogs/mine", examples.CATALOG, 201),
    "list_budgets": (ANY_KEY, "GET", "/budgets", None, 200),
    "resolve_budget": (ANY_KEY, "GET", "/budgets/resolve?model=x", None, 200),
    "get_context_budgets": (ANY_KEY, "GET", "/context-budgets", None, 200),
    "get_budget": (ANY_KEY, "GET", "/budgets/99999999", None, 404),
    # In the key's own project; rows of every project: test_permissions.
    "create_budget": ("budgets", "POST", "/budgets", examples.BUDGET, 201),
    "change_budget": ("budgets", "PATCH", "/budgets/99999999", {}, 404),
    "delete_budget": ("budgets", "DELETE", "/budgets/99999999", None, 404),
    "get_preflight": ("read", "GET", "/preflight", None, 200),
    "list_what_ifs": ("read", "GET", "/what-ifs", None, 200),
    "ask_what_if": ("fit", "POST", "/what-ifs", examples.WHAT_IF, 201),
    "get_what_if": ("read", "GET", "/what-ifs/nobody", None, 404),
    "list_what_if_items": ("read", "GET", "/what-ifs/nobody/items?figure=calls", None, 404),
    "cancel_what_if": ("fit", "POST", "/what-ifs/nobody/cancel", None, 404),
    "apply_what_if": ("budgets", "POST", "/what-ifs/nobody/apply", None, 404),
    "list_suggestions": ("read", "GET", "/suggestions", None, 200),
    "accept_suggestion": ("budgets", "POST", "/suggestions/99999999/accept", None, 404),
    "dismiss_suggestion": (
        "budgets",
        "POST",
        "/suggestions/99999999/dismiss",
        examples.DISMISSAL,
        404,
    ),
    "get_net_value": ("read", "GET", "/net-value?kind=trim", None, 200),
    "get_fit": ("read", "GET", "/fits/fit_unknown", None, 404),
    "try_suggestion": ("budgets", "POST", "/suggestions/99999999/trial", examples.TRIAL, 404),
    "get_learned_limits": ("read", "GET", "/learned-limits?model=openai/gpt-4o", None, 200),
}


def _send(door: Door, method: str, path: str, body: object) -> Any:
    if body is None:
        return door.send(method, path, b"")
    return door.send(method, path, body)


def test_every_documented_route_has_a_row_with_its_scope() -> None:
    documented = {
        operation["operationId"]: operation["x-scope"]
        for methods in document()["paths"].values()
        for operation in methods.values()
    }

    assert documented == {name: row[0] for name, row in ROUTES.items()}


@pytest.mark.one_database
@pytest.mark.parametrize("name", ROUTES)
def test_a_route_takes_exactly_its_scope_and_admin(door: Callable[..., Door], name: str) -> None:
    scope, method, path, body, let_in = ROUTES[name]

    for held in SCOPES:
        response = _send(door(held), method, path, body)

        if scope is ANY_KEY or held in (scope, "admin"):
            # A repeat of the same body is let in as well, with another good status.
            assert response.status_code in (let_in, 200, 409), held
        else:
            assert response.status_code == 403, held
            assert response.json()["code"] == "forbidden"
            assert f"lacks the scope {scope}" in response.json()["detail"]


def _with_nul(path: str) -> str:
    return re.sub(r"/(nobody|none|nothing|mine|fit_unknown)(?=/|$|\?)", "/a%00b", path)


@pytest.mark.parametrize("name", [name for name, row in ROUTES.items() if "%" in _with_nul(row[2])])
def test_an_id_with_nul_is_nobodys_on_any_route(door: Callable[..., Door], name: str) -> None:
    _, method, path, body, _ = ROUTES[name]

    answer = door("admin").send(method, _with_nul(path), body)

    assert answer.status_code in (404, 422), answer.content


@pytest.mark.one_database
@pytest.mark.parametrize("name", ROUTES)
def test_no_route_answers_without_a_key(project: ProjectInfo, name: str) -> None:
    _, method, path, body, _ = ROUTES[name]

    response = _send(Door(None), method, path, body)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response["Content-Type"] == "application/problem+json"


def test_a_revoked_key_is_refused_at_once(owner: Door) -> None:
    assert owner.get("/calls").status_code == 200

    keys.revoke_key(actor=SHELL, name="owner", now=timezone.now())

    assert owner.get("/calls").status_code == 401


@pytest.mark.parametrize(
    "authorization",
    [
        "",  # nothing
        "Bearer",  # a scheme without a key
        "Bearer ",
        "Bearer wrong",  # unknown
        "Basic b3duZXI6eA==",  # another scheme
        "Bearer two words",
        "Bearer ünbekannt",
    ],
)
def test_wrong_credentials_are_401(project: ProjectInfo, authorization: str) -> None:
    response = Client().get(f"{PREFIX}/calls", headers={"Authorization": authorization})

    assert response.status_code == 401


def test_the_key_may_come_as_x_api_key(owner: Door) -> None:
    response = Client().get(f"{PREFIX}/calls", headers={"x-api-key": owner.key or ""})

    assert response.status_code == 200


def test_the_scheme_is_read_in_any_case(owner: Door) -> None:
    headers = {"Authorization": f"bearer  {owner.key}"}

    assert Client().get(f"{PREFIX}/calls", headers=headers).status_code == 200


def test_a_use_is_noted(owner: Door) -> None:
    owner.get("/calls")

    assert api_keys()[0].latest_used_at is not None


def test_projects_do_not_see_each_other(owner: Door, stranger: Door) -> None:
    owner.post("/calls", {"id": "mine", "model": "m", "conversation": "talk"})

    assert stranger.get("/calls/mine").status_code == 404
    assert stranger.get("/conversations/talk").status_code == 404
    assert stranger.get("/conversations/talk/timeline").status_code == 404
    assert stranger.get("/calls").json()["items"] == []
    assert stranger.get("/conversations").json()["items"] == []
    assert stranger.post("/calls/reconcile", {"ids": ["mine"]}).json()["missing"] == ["mine"]
    # The same id is another call there.
    again = stranger.post("/calls", {"id": "mine", "model": "m", "conversation": "talk"})
    assert (again.status_code, again.json()["generation"]) == (201, 1)


@pytest.fixture
def person(project: ProjectInfo) -> Client:
    """Somebody signed in to the pages."""
    return sign_in("vera", project=project, role=MemberRole.VIEWER)


def test_somebody_signed_in_may_read(person: Client) -> None:
    assert person.get(f"{PREFIX}/calls").status_code == 200
    assert person.get(f"{PREFIX}/budgets").status_code == 200


def test_a_session_reads_the_project_the_pages_show(person: Client, stranger: Door) -> None:
    stranger.post("/calls", {"id": "theirs", "model": "m"})
    elsewhere = find_project(slug="elsewhere")
    assert elsewhere is not None
    session = person.session
    session["project"] = "elsewhere"
    session.save()

    # Somebody else's project is as good as none: the session falls back to one's own.
    assert person.get(f"{PREFIX}/calls/theirs").status_code == 404

    sign_in("vera", project=elsewhere, role=MemberRole.VIEWER)

    assert person.get(f"{PREFIX}/calls/theirs").status_code == 200


def test_a_session_writes_nothing(person: Client) -> None:
    response = person.post(f"{PREFIX}/calls", examples.CALL, content_type="application/json")

    assert response.status_code == 401


def test_a_session_is_not_lent_to_other_sites(person: Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}

    assert person.get(f"{PREFIX}/calls", headers=headers).status_code == 401


def test_a_wrong_key_is_not_made_good_by_a_session(person: Client) -> None:
    headers = {"Authorization": "Bearer wrong"}

    assert person.get(f"{PREFIX}/calls", headers=headers).status_code == 401


def test_the_names_of_keys_are_the_callers(owner: Door) -> None:
    owner.post("/calls", {"id": "a", "model": "m"})
    owner.post("/calls", {"id": "b", "model": "m", "caller": "planner"})

    assert owner.get("/calls/a").json()["caller"] == "owner"
    assert owner.get("/calls/b").json()["caller"] == "planner"


def test_somebody_signed_in_has_a_rate_too(person: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    held = KeyLimits(requests_per_second=2, wrong_keys_per_minute=0)
    monkeypatch.setattr("helmdash.api.auth.key_limits", lambda: held)
    answers = [person.get(f"{PREFIX}/budgets") for _ in range(4)]

    assert {answer.status_code for answer in answers[:2]} == {200}
    assert answers[-1].status_code == 429
    assert answers[-1]["Retry-After"] == "1"
    assert answers[-1].json()["code"] == "too_many_requests"
