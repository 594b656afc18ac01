"""Every address of the pages and of the admin against every kind of caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from helmdash.pages.urls import urlpatterns
from helmdash.records.models import (
    AlertChannel,
    AlertDelivery,
    AlertRule,
    ApiKey,
    Budget,
    Conversation,
    PlanRecord,
    Reminder,
    Round,
    SavedView,
    Suggestion,
    TriageWord,
    Trial,
    Upstream,
    WhatIf,
)
from helmdash.urls import urlpatterns as all_urls
from tests.access.cast import KEYS, PEOPLE, House, browser, key_of, on_both
from tests.factories import make_suggestion
from tests.pages.hygiene import faults

ROLES = ("viewer", "editor", "owner", "superuser")
REFUSED = (403, 404, 409)


@dataclass(frozen=True, slots=True)
class Page:
    """An address: the least that a person must be, and how it is asked for.

    args: parts of the address, which name a row of the default project. least "signed in": anybody
    with an account, whom it leads on; "account": anybody with one, who stays; "nobody": everybody.
    names_row False: args name no row, and the page is about the project of whoever asks.
    """

    least: str
    args: tuple[str, ...] = ()
    method: str = "GET"
    data: Mapping[str, str] = field(default_factory=dict)
    names_row: bool = True


def form(least: str, *args: str, **data: str) -> Page:
    return Page(least, args, "POST", data)


# name -> what it takes. A page that is not here fails the test below.
PAGES: dict[str, Page] = {
    "overview": Page("viewer"),
    "conversations": Page("viewer"),
    "conversation": Page("viewer", ("talk",)),
    "generation": Page("viewer", ("1", "talk")),
    "calls": Page("viewer"),
    "call": Page("viewer", ("call-0",)),
    "plans": Page("viewer"),
    "plan": Page("viewer", ("plan-1",)),
    "models": Page("viewer"),
    "weekly": Page("viewer"),
    "weekly-file": Page("viewer"),
    "trims": Page("viewer"),
    "net-value": Page("viewer"),
    "net-calls": Page("viewer"),
    "weekly-mail": form("viewer", do="stop"),
    "weekly-stop": Page("nobody", ("abc-def",)),
    "trim": Page("viewer", ("FIT",)),
    "compare-trim": Page("viewer", ("FIT",)),
    "budgets": Page("viewer"),
    "preflight": Page("viewer"),
    "edit-budgets": Page("editor"),
    "budget-edits": Page("viewer"),
    "revert-budgets": form("editor"),
    "what-ifs": Page("viewer"),
    "what-if": Page("viewer", ("WHAT_IF",)),
    "what-if-items": Page("viewer", ("WHAT_IF",)),
    "act-on-what-if": form("editor", "WHAT_IF", do="cancel"),
    "catalog": Page("viewer"),
    "help": Page("viewer"),
    "reds": Page("viewer"),
    "find": Page("viewer"),
    "export": Page("viewer", ("calls", "csv"), names_row=False),
    "query": Page("viewer", ("calls",), names_row=False),
    "saved-views": Page("viewer", ("calls",), names_row=False),
    "change-views": Page(
        "viewer", ("calls",), "POST", {"do": "save", "name": "Mine"}, names_row=False
    ),
    "compare-calls": Page("viewer"),
    "compare-plans": Page("viewer"),
    "settings": Page("viewer"),
    "care-settings": Page("viewer"),
    "reminders": Page("viewer", ("talk",)),
    "gateway": Page("viewer"),
    "upstreams": Page("viewer"),
    "recorder": Page("viewer"),
    "start-job": form("superuser", job="rebuild"),
    "cancel-job": form("superuser", job="rebuild"),
    "try-fit": Page("viewer"),
    "try-plan": Page("viewer"),
    "try-route": Page("viewer"),
    "members": Page("viewer"),
    "audit": Page("owner"),
    "change-members": form("owner", do="set", user="somebody", role="editor"),
    "connect": Page("viewer"),
    "connect-key": form("owner", client="codex"),
    "first-key": form("owner"),
    "create-key": form("owner", name="mine", scopes="read"),
    "revoke-key": form("owner", name="to-look-at"),
    "demo-part": Page("viewer"),
    "load-demo": form("owner"),
    "cancel-demo": form("owner"),
    "remove-demo": form("owner"),
    "alerts": Page("viewer"),
    "alert-rule": Page("owner"),
    "alert-channel": Page("owner"),
    "save-alert-rule": form(
        "owner", kind="silence", name="Silent", minutes="60", group_s="0", zone="UTC"
    ),
    "save-alert-channel": form(
        "owner", kind="slack", name="Ops", address="https://hooks.example.com/x"
    ),
    "acknowledge": Page("nobody", ("abc-def",)),
    "save-care": form("owner"),
    "preview-care": form("owner"),
    "gateway-policy": form("owner", budget_mode="warn"),
    "test-named-upstream": form("owner", name="nowhere"),
    "test-upstream": form("owner", "UPSTREAM"),
    "change-reminders": form("editor", "talk", do="add", content="Note."),
    "clear-now": form("editor", "talk"),
    "erase-conversation": form("owner", "talk"),
    "go-on": form("editor", "talk"),
    "conversation-budget": Page("editor", ("talk",)),
    "call-budget": Page("editor", ("call-0",)),
    "triage": form("editor", "talk", word="note", text="Look at this."),
    "published-list": form("editor", do="on"),
    "decide-suggestion": form("owner", "SUGGESTION", do="dismiss", reason="A test."),
    "mark-failures": form("editor", cause="timed_out", model="openai/gpt-4o", state="muted"),
    "plan-followed": form("editor", "plan-1", followed="yes"),
    "profile": Page("account"),
    "change-password": form("account", old_password="guess"),
    "save-look": form("signed in", zone="Europe/Berlin"),
    "end-sessions": form("signed in"),
    "ask-reset": Page("nobody"),
    "oidc": Page("nobody"),
    "history-command": Page("nobody"),
    "oidc-done": Page("nobody"),
    "reset-password": Page("nobody", ("MQ", "abc-def")),
    "theme": form("signed in", theme="dark"),
    "login": Page("nobody"),
    "sign-in-link": Page("nobody", ("MQ", "abc-def")),
    "favicon": Page("nobody"),
    "logout": form("signed in"),
}
# What the pages of "Try it" do takes more than to look at their forms.
TRIES = {"try-fit": "editor", "try-plan": "editor", "try-route": "editor"}


def test_every_page_is_in_the_table() -> None:
    known = {pattern.name or "favicon" for pattern in urlpatterns}

    assert known == set(PAGES)
    # What else there is has tables of its own: the API, the admin, and three for machines.
    assert [str(each.pattern) for each in cast("list[Any]", all_urls)] == [
        "healthz",
        "readyz",
        "metrics",
        "api/v1/",
        "admin/password_change/",
        "admin/",
        "",
    ]


@pytest.fixture
def house(full_house: House, db: None) -> House:
    return full_house


def _address(name: str, page: Page, house: House) -> str:
    if name == "favicon":
        return "/favicon.ico"
    upstream = Upstream.objects.filter(name="sim").values_list("pk", flat=True).first()
    stand_ins: dict[str, object] = {"FIT": house.fit, "UPSTREAM": upstream}
    if "SUGGESTION" in page.args:
        another = f"m{Suggestion.objects.count()}"
        stand_ins["SUGGESTION"] = make_suggestion(project=house.project, model_key=another).pk
    if "WHAT_IF" in page.args:
        stand_ins["WHAT_IF"] = WhatIf.objects.values_list("name", flat=True).first()
    return reverse(name, args=[stand_ins.get(part, part) for part in page.args])


def _ask(client: Client, name: str, page: Page, house: House) -> int:
    address = _address(name, page, house)
    if page.method == "POST":
        return client.post(address, {"project": house.project.slug, **page.data}).status_code
    # The part of a page that has no page of its own is asked for as the script does.
    part = {"HX-Request": "true"} if name == "reminders" else {}
    return client.get(address, headers=part).status_code


def _is_expected(who: str, page: Page, status: int) -> bool:
    if page.least == "nobody":
        return status not in (401, 403)
    if page.least == "signed in":
        return status == 302
    if page.least == "account":
        return status in (200, 422)
    if who in ROLES:
        if ROLES.index(who) >= ROLES.index(page.least):
            return status in (200, 302, 204)
        return status == 403
    if who == "other_owner":
        # Pages show their own project; rows and forms of the other one are not there for them.
        is_theirs = page.method == "GET" and not (page.args and page.names_row)
        return status == 200 if is_theirs else status in REFUSED
    return status == 403


@pytest.mark.parametrize("who", on_both(PEOPLE, "owner", "other_owner"))
def test_what_people_may_ask_of_the_pages(house: House, who: str) -> None:
    client = browser(who, house)

    # Signing out comes last in the table.
    wrong = [
        (name, status)
        for name, page in PAGES.items()
        if not _is_expected(who, page, status := _ask(client, name, page, house))
    ]

    assert wrong == []


# Forms that name a row of the default project by its number, or by its id in the address.
def _forms_with_rows(house: House) -> list[tuple[str, tuple[object, ...], dict[str, object]]]:
    view = SavedView.objects.create(
        project_id=house.project.id, noun="calls", name="Red", address="level=critical", by="owner"
    )
    edit = Budget.history.filter(project_id=house.project.id).latest().pk
    channel = house.row("alertchannel").pk
    what_if, suggestion = house.row("whatif").name, house.row("suggestion").pk
    talk: tuple[object, ...] = ("talk",)
    return [
        *(
            ("change-views", ("calls",), {"do": do, "view": view.pk, "name": "Theirs"})
            for do in ("rename", "delete", "first")
        ),
        *(("save-alert-channel", (), {"id": channel, "do": do}) for do in ("delete", "test")),
        ("save-alert-rule", (), {**PAGES["save-alert-rule"].data, "channels": channel}),
        ("revert-budgets", (), {"one": edit}),
        ("edit-budgets", (), {"row": house.row("budget").pk, "do": "save"}),
        *(("decide-suggestion", (suggestion,), {"do": do}) for do in ("accept", "trial")),
        *(("act-on-what-if", (what_if,), {"do": do}) for do in ("apply", "cancel")),
        ("revoke-key", (), {"name": "to-look-at"}),
        ("test-upstream", (house.row("upstream").pk,), {}),
        ("plan-followed", ("plan-1",), {"followed": "yes"}),
        *((name, talk, {"do": "save"}) for name in ("clear-now", "go-on", "erase-conversation")),
        ("triage", talk, {"word": "note", "text": "Theirs."}),
        ("change-reminders", talk, {"do": "add", "content": "Theirs."}),
    ]


_CHANGED: tuple[type[Any], ...] = (
    *(ApiKey, AlertChannel, AlertRule, AlertDelivery, Budget, Conversation, PlanRecord),
    *(Reminder, Round, SavedView, Suggestion, Trial, TriageWord, WhatIf),
)


@pytest.mark.one_database
def test_a_form_of_ones_own_project_changes_no_row_of_another(house: House) -> None:
    client = browser("other_owner", house)
    forms = _forms_with_rows(house)

    def rows() -> dict[str, list[dict[str, object]]]:
        own = {each: each._default_manager.filter(project_id=house.project.id) for each in _CHANGED}
        return {each.__name__: list(found.order_by("pk").values()) for each, found in own.items()}

    before = rows()
    statuses = [
        client.post(reverse(name, args=args), {"project": "elsewhere", **data}).status_code
        for name, args, data in forms
    ]

    assert rows() == before
    assert set(statuses) <= {302, 404, 422}


@pytest.mark.parametrize("who", on_both(PEOPLE, "owner"))
def test_who_may_try_a_plan(house: House, who: str) -> None:
    client = browser(who, house)
    may_edit = who in ("editor", "owner", "superuser")

    for name, least in TRIES.items():
        page = form(least)
        status = _ask(client, name, page, house)

        assert status in ((422,) if may_edit else REFUSED), name


@pytest.mark.parametrize("who", on_both(["nobody", *KEYS], "nobody"))
def test_without_a_session_every_page_leads_to_sign_in(house: House, who: str) -> None:
    client = browser("nobody", house)
    if who != "nobody":
        client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {key_of(who, house)}"

    for name, page in PAGES.items():
        if page.least == "nobody":
            continue
        address = _address(name, page, house)
        send = client.post if page.method == "POST" else client.get
        response = send(address)

        assert response.status_code == 302, name
        assert response["Location"].startswith("/login/?next="), name


def test_who_is_a_member_of_nothing_is_told_so_and_can_sign_out(house: House) -> None:
    html = browser("stranger", house).get("/").content.decode()

    assert "a member of no project" in html
    assert 'action="/logout/"' in html
    assert faults(html) == []


def test_nobody_switches_to_a_project_of_others(house: House) -> None:
    client = browser("other_owner", house)

    assert client.get(f"/?project={house.project.slug}").status_code == 404
    assert client.get("/?project=elsewhere").status_code == 200
    session = client.session
    session["project"] = house.project.slug
    session.save()
    for address in ("/", "/settings/", "/budgets/"):
        html = client.get(address).content.decode()
        assert "Project: Default" not in html
        assert "acme/one" not in html
    assert "project Elsewhere" in client.get("/settings/").content.decode()
    # A link to a row of another project leads nowhere, as if nobody had it.
    assert client.get("/calls/call-0/").status_code == 404
    live = client.get("/conversations/", headers={"HX-Request": "true"})
    assert "talk" not in live.content.decode()


# --- the admin: table -> the least that looks, adds, changes, deletes; None: nobody does

TABLES: dict[str, tuple[str, str | None, str | None, str | None]] = {
    "alertdelivery": ("viewer", None, None, None),
    "apikey": ("viewer", "owner", "owner", None),
    "budget": ("viewer", "editor", "editor", "editor"),
    "budgetalias": ("superuser", "superuser", "superuser", "superuser"),
    "call": ("viewer", None, None, None),
    "catalogrevision": ("viewer", "owner", None, None),
    "conversation": ("viewer", None, None, None),
    "fit": ("viewer", None, None, None),
    "healthchange": ("viewer", None, None, None),
    "membership": ("viewer", "owner", "owner", "owner"),
    "planrecord": ("viewer", None, None, None),
    "project": ("viewer", "superuser", "owner", None),
    "suggestion": ("viewer", None, None, None),
    "exporter": ("superuser", "superuser", "superuser", "superuser"),
    "upstream": ("viewer", "owner", "owner", "owner"),
    "user": ("superuser", "superuser", "superuser", "superuser"),
}
VIEWS = ("changelist", "history", "add", "change", "delete")
MORE = ("deleted", "revert", "import", "process_import", "export", "password_change")


def test_every_table_and_view_of_the_admin_is_in_the_table() -> None:
    found = {model._meta.model_name: each for model, each in admin.site._registry.items()}

    assert set(found) == set(TABLES)
    for table, model_admin in found.items():
        app = model_admin.opts.app_label
        names = {url.name for url in model_admin.get_urls() if url.name}
        views = {name.removeprefix(f"{app}_{table}_").removeprefix("auth_user_") for name in names}
        assert views <= {*VIEWS, *MORE}, table


def _has(who: str, least: str | None) -> bool:
    return least is not None and who in ROLES and ROLES.index(who) >= ROLES.index(least)


@pytest.mark.parametrize("who", on_both(["nobody", *PEOPLE], "owner", "other_owner"))
def test_what_people_may_ask_of_the_admin(house: House, who: str) -> None:
    client = browser(who, house)
    is_in = who in ROLES or who == "other_owner"

    wrong = []
    for table, (look, add, change, delete) in TABLES.items():
        app = "auth" if table == "user" else "records"
        row = house.row(table)
        looks = _has(who, look)
        # (view, method) -> whether it is answered; a page to look at is one for who may change.
        rows = {
            ("changelist", "GET"): _has(who, look) or (who == "other_owner" and look == "viewer"),
            ("add", "GET"): _has(who, add) or (who == "other_owner" and add in ("editor", "owner")),
            ("history", "GET"): looks,
            ("change", "GET"): looks,
            ("change", "POST"): _has(who, change),
            ("delete", "GET"): _has(who, delete),
        }
        for (view, method), is_allowed in rows.items():
            name = f"admin:{app}_{table}_{view}"
            needs_row = view in ("history", "change", "delete")
            address = reverse(name, args=[row.pk] if needs_row else [])
            response = client.post(address, {}) if method == "POST" else client.get(address)
            status = response.status_code
            # Without a form's fields an allowed change is shown again, with what is wrong.
            good = status == 200 or (is_allowed and table == "project" and status == 302)
            if good != is_allowed or (not is_in and status not in (302, 403)):
                wrong.append((table, view, method, status))

    assert wrong == []


@pytest.mark.parametrize("who", on_both(PEOPLE, "owner", "other_owner"))
def test_what_else_the_admin_does_with_budgets(house: House, who: str) -> None:
    client = browser(who, house)
    row = house.row("budget")
    version = row.history.latest().pk
    own = who in ROLES or who == "other_owner"
    edits = who in ("editor", "owner", "superuser", "other_owner")
    base = "/admin/records/budget/"

    assert (client.get(f"{base}deleted/").status_code == 200) is own
    assert (client.get(f"{base}export/").status_code == 200) is own
    assert (client.get(f"{base}import/").status_code == 200) is edits
    revert = client.post(f"{base}{row.pk}/history/{version}/revert/")
    went_back = revert.status_code == 302 and "login" not in revert["Location"]
    assert went_back is (who in ("editor", "owner", "superuser"))
