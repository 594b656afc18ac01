"""Members in the admin: everybody edits the rows of their own projects, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.operations.access import keys, members
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import ApiKey, Budget, Membership, Project, Upstream
from tests.admin.forms import filled, text_of
from tests.admin.house import make_project, record
from tests.admin.test_transfer import confirm, exported, preview
from tests.factories import make_capture, sign_in

A = "/admin/records/"
FIGURES = {"input_tokens": 9_000, "output_tokens": 900, "tier": "C"}


@pytest.fixture
def mine(project: ProjectInfo) -> ProjectInfo:
    """A project of its own, beside the default one."""
    return make_project(slug="mine")


@pytest.fixture
def member(mine: ProjectInfo) -> Callable[[str], Client]:
    """The browser of a member of that project, by role."""
    return lambda role: sign_in(role, project=mine, role=MemberRole(role))


def add(key: str, project: ProjectInfo | None) -> Budget:
    return Budget.objects.create(key=key, project_id=project.id if project else None, **FIGURES)


def change(row: Any) -> str:
    return f"{A}{row._meta.model_name}/{row.pk}/change/"


def test_staff_without_a_membership_gets_nowhere(project: ProjectInfo, client: Client) -> None:
    staff = get_user_model().objects.create_user(username="staff", is_staff=True)
    client.force_login(staff)

    for address in ("/admin/", f"{A}budget/", f"{A}apikey/add/", "/admin/auth/user/"):
        assert client.get(address, follow=True).status_code == 403, address
    assert client.post(f"{A}apikey/add/", {"name": "x", "scopes": ["admin"]}).status_code == 302
    assert not ApiKey.objects.exists()


def test_members_need_no_staff_flag_and_see_the_rows_of_their_projects_only(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    shared, theirs, own = add("all/one", None), add("their/one", project), add("my/one", mine)
    record(make_capture(id="their-call"), project=project)
    record(make_capture(id="my-call"), project=mine)

    for role in MemberRole:
        browser = member(role)
        assert not get_user_model().objects.get(username=role).is_staff
        assert browser.get("/admin/").status_code == 200
        listed = text_of(browser.get(f"{A}budget/"))
        assert "my/one" in listed
        assert not {"all/one", "their/one", "openai/gpt-4o"} & set(listed.split())
        # The names of other projects stand in no filter.
        assert "Default" not in listed
        calls = text_of(browser.get(f"{A}call/"))
        assert ("my-call" in calls, "their-call" in calls) == (True, False)
        of_default = browser.get(f"{A}call/?project={project.id}").content.decode()
        assert "their-call" not in of_default
        for row in (shared, theirs):
            for page in ("change/", "delete/", "history/"):
                answer = browser.get(f"{A}budget/{row.pk}/{page}")
                assert answer.status_code in (302, 403, 404), (role, page)
        assert browser.get(change(own)).status_code == 200
        for closed in ("/admin/auth/user/", f"{A}budgetalias/", f"{A}project/add/"):
            assert browser.get(closed).status_code == 403, closed


@pytest.mark.parametrize("role", MemberRole)
def test_budgets_are_changed_by_editors_of_their_project(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client], role: MemberRole
) -> None:
    browser, own = member(role), add("my/one", mine)
    given = {"key": "my/two", "project": mine.id, "enabled": "on", **_rest()}
    made = browser.post(f"{A}budget/add/", given)
    browser.post(change(own), {**given, "key": "my/one", "input_tokens": 8_000})
    own.refresh_from_db()

    is_editor = role is not MemberRole.VIEWER
    assert made.status_code == (302 if is_editor else 403)
    assert Budget.objects.filter(key="my/two", project_id=mine.id).exists() is is_editor
    assert own.input_tokens == (8_000 if is_editor else 9_000)


@pytest.mark.parametrize("target", ["", "default"])
def test_a_row_goes_to_no_project_that_is_not_ones_own(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client], target: str
) -> None:
    browser, own = member("owner"), add("my/one", mine)
    where = project.id if target else ""
    given = {"key": "my/one", "project": where, "enabled": "on", **_rest()}

    moved = browser.post(change(own), given)
    made = browser.post(f"{A}budget/add/", {**given, "key": "my/new"})

    assert "project" in moved.context["adminform"].form.errors
    assert "project" in made.context["adminform"].form.errors
    own.refresh_from_db()
    assert own.project_id == mine.id
    assert not Budget.objects.filter(key="my/new").exists()


@pytest.mark.parametrize("kind", ["0", "1"])
@pytest.mark.parametrize("slug", ["", "default"])
def test_an_import_writes_ones_own_rows_only(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client], kind: str, slug: str
) -> None:
    theirs = add("their/one", project if slug else None)
    for key in ("their/one", "their/new"):
        rows = [{"key": key, "project": slug, **FIGURES, "input_tokens": 1}]
        file = json.dumps(rows) if kind == "1" else _csv(rows)

        told = preview(member("owner"), file, kind, f"{A}budget/")

        assert "confirm_form" not in told.context or told.context.get("confirm_form") is None
    theirs.refresh_from_db()
    assert theirs.input_tokens == 9_000
    assert not Budget.objects.filter(key="their/new").exists()


def test_editors_import_and_export_the_rows_of_their_project(
    mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    browser = member("editor")
    add("my/one", mine)
    rows = [{"key": "my/new", "project": "mine", **FIGURES}]

    confirm(browser, preview(browser, json.dumps(rows), "1", f"{A}budget/"), f"{A}budget/")

    assert Budget.objects.filter(key="my/new", project_id=mine.id).exists()
    out = json.loads(exported(browser, "1", f"{A}budget/"))
    assert {row["key"] for row in out} == {"my/one", "my/new"}
    assert member("viewer").get(f"{A}budget/import/").status_code == 403


def test_what_was_anothers_comes_back_by_nobody_else(
    operator: Client, project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    moved, gone, own_gone = add("was/shared", None), add("their/gone", project), add("my/g", mine)
    versions = {row.pk: row.history.latest().pk for row in (moved, gone, own_gone)}
    for row in (gone, own_gone):
        row.delete()
    moved.project_id = mine.id
    moved.save()
    browser = member("owner")

    assert "was/shared" in text_of(browser.get(f"{A}budget/{moved.pk}/history/"))
    for row in (moved, gone):
        url = f"{A}budget/{row.pk or 0}/history/{versions.get(row.pk, 0)}/revert/"
        assert browser.post(url).status_code in (403, 404)
    deleted = text_of(browser.get(f"{A}budget/deleted/"))
    assert ("my/g" in deleted, "their/gone" in deleted) == (True, False)
    moved.refresh_from_db()
    assert moved.project_id == mine.id


def test_owners_give_keys_no_scope_that_they_do_not_hold(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    browser = member("owner")
    boss = sign_in("boss", project=project, role=MemberRole.OWNER)
    every = ["record", "read", "fit", "plan", "budgets"]

    made = browser.post(f"{A}apikey/add/", {"project": mine.id, "name": "a", "scopes": ["admin"]})
    for browser_of, of, scopes, field in (
        (browser, project, ["read"], "project"),
        (boss, project, ["admin"], "scopes"),
        (boss, mine, ["read"], "project"),
    ):
        refused = browser_of.post(
            f"{A}apikey/add/", {"project": of.id, "name": "b", "scopes": scopes}
        )
        assert field in refused.context["adminform"].form.errors
    boss.post(f"{A}apikey/add/", {"project": project.id, "name": "c", "scopes": every})

    # An admin key of any other project acts in that project alone.
    assert made.status_code == 200
    assert set(ApiKey.objects.values_list("name", flat=True)) == {"a", "c"}
    own = ApiKey.objects.get(name="c")
    boss.post(change(own), {"name": "c", "scopes": [*every, "admin"]})
    own.refresh_from_db()
    assert own.scopes == every
    assert member("editor").get(f"{A}apikey/add/").status_code == 403


def test_keys_are_revoked_by_the_owners_of_their_project(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    browser = member("owner")
    members.set_member(actor=SHELL, user="owner", project="default", role=MemberRole.VIEWER)
    keys.create_key(actor=SHELL, name="theirs", project="default")
    keys.create_key(actor=SHELL, name="ours", project="mine")
    ids = list(ApiKey.objects.values_list("pk", flat=True))

    given = {"action": "revoke", "_selected_action": ids, "confirmed": "yes"}
    browser.post(f"{A}apikey/", given)

    active = ApiKey.objects.filter(revoked_at__isnull=True)
    assert [key.name for key in active] == ["theirs"]


def test_owners_manage_members_of_their_project_by_name(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    get_user_model().objects.create_user(username="vera")
    browser, row = member("owner"), Project.objects.get(pk=mine.id)
    sent = filled(browser, change(row))
    sent |= {"memberships-1-user": "vera", "memberships-1-role": "editor"}

    browser.post(change(row), sent)
    browser.post(f"{A}membership/add/", {"project": project.id, "user": "vera", "role": "owner"})

    found = Membership.objects.get(user__username="vera")
    assert (found.project_id, found.role) == (mine.id, "editor")
    assert found.history.latest().history_user.username == "owner"
    assert "vera" not in browser.get(f"{A}membership/add/").content.decode()
    assert member("editor").get(f"{A}membership/add/").status_code == 403


def test_a_project_keeps_its_last_owner(
    operator: Client, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    browser = member("owner")
    row, project = Membership.objects.get(), Project.objects.get(pk=mine.id)
    own = f"{A}membership/{row.pk}/"
    account = f"/admin/auth/user/{row.user_id}/change/"
    demoted = {"memberships-0-role": "viewer"}
    on_account = filled(operator, account) | {
        "memberships-0-DELETE": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
    }

    for who in (browser, operator):
        who.post(f"{own}change/", filled(who, f"{own}change/") | {"role": "viewer"})
        who.post(f"{own}delete/", {"post": "yes"})
        who.post(
            f"{A}membership/",
            {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
        )
        who.post(change(project), filled(who, change(project)) | demoted)
    operator.post(account, on_account)
    operator.post(f"/admin/auth/user/{row.user_id}/delete/", {"post": "yes"})
    operator.post(
        "/admin/auth/user/",
        {"action": "delete_selected", "_selected_action": [row.user_id], "post": "yes"},
    )

    row.refresh_from_db()
    assert row.role == "owner"
    # Whoever makes somebody else an owner in the same form may go.
    get_user_model().objects.create_user(username="vera")
    promoted = {"memberships-1-user": "vera", "memberships-1-role": "owner"}
    browser.post(change(project), filled(browser, change(project)) | demoted | promoted)
    roles = Membership.objects.values_list("user__username", "role")
    assert dict(roles) == {"owner": "viewer", "vera": "owner"}


def test_who_takes_a_role_away_keeps_others_from_it_until_it_is_done(
    operator: Client, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    second = member("owner")
    other = Membership.objects.get()
    members.set_member(actor=SHELL, user="first", project=mine.slug, role=MemberRole.OWNER)
    row = Membership.objects.get(user__username="first")
    # Each form that may take the last owner away, by either of two.
    project = change(Project.objects.get(pk=mine.id))
    forms: list[tuple[Client, str, dict[str, Any]]] = [
        (second, project, filled(second, project) | {"memberships-0-role": "viewer"}),
        (second, change(row), filled(second, change(row)) | {"role": "viewer"}),
        (operator, f"{A}membership/{other.pk}/delete/", {"post": "yes"}),
        (
            operator,
            f"{A}membership/",
            {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes"},
        ),
        (operator, f"/admin/auth/user/{other.user_id}/delete/", {"post": "yes"}),
    ]

    for browser, address, sent in forms:
        with CaptureQueriesContext(connection) as asked, transaction.atomic():
            browser.post(address, sent)
            transaction.set_rollback(True)

        told = [each["sql"] for each in asked]
        locked = next(n for n, sql in enumerate(told) if _locks_project(sql))
        assert locked < next(n for n, sql in enumerate(told) if _counts_owners(sql)), address


def test_a_locked_account_is_no_owner_to_leave_a_project_to(
    mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    members.set_member(actor=SHELL, user="gone", project=mine.slug, role=MemberRole.OWNER)
    get_user_model().objects.filter(username="gone").update(is_active=False)
    browser = member("owner")
    row = Membership.objects.get(user__username="owner")

    browser.post(change(row), filled(browser, change(row)) | {"role": "viewer"})
    browser.post(f"{A}membership/{row.pk}/delete/", {"post": "yes"})

    row.refresh_from_db()
    assert row.role == "owner"
    # The locked one may go.
    members.remove_member(actor=SHELL, user="gone", project=mine.slug)
    assert Membership.objects.count() == 1


def test_owners_change_settings_but_not_what_concerns_other_projects(
    mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    row = Project.objects.get(pk=mine.id)
    browser = member("owner")
    sent = filled(browser, change(row), retention_days=30) | {"slug": "x", "is_default": "on"}

    browser.post(change(row), sent)

    row.refresh_from_db()
    assert (row.retention_days, row.slug, row.is_default) == (30, "mine", False)
    assert member("editor").post(change(row), sent).status_code == 403
    assert browser.get(f"{A}project/{mine.id}/delete/").status_code == 403


def test_an_owner_lends_no_variable_and_reaches_no_private_address(
    project: ProjectInfo, mine: ProjectInfo, member: Callable[[str], Client]
) -> None:
    browser = member("owner")
    given = {
        "project": mine.id,
        "name": "acme",
        "kind": "openai",
        "base_url": "https://a.test/v1",
        "read_timeout_s": 60,
        "enabled": "on",
    }
    lent = Upstream.objects.create(
        name="lent",
        kind="openai",
        base_url="https://b.test/v1",
        project_id=mine.id,
        key_variable="OPENAI_API_KEY",
    )

    browser.post(f"{A}upstream/add/", given | {"key_variable": "OPENAI_API_KEY"})
    inside = browser.post(
        f"{A}upstream/add/",
        given | {"name": "in", "base_url": "http://127.0.0.1:9/v1", "allow_private": "on"},
    )

    assert Upstream.objects.get(name="acme").key_variable == ""
    assert "base_url" in inside.context["adminform"].form.errors
    assert browser.post(change(lent), given).status_code == 403


def test_superusers_give_memberships_on_the_page_of_an_account(
    operator: Client, mine: ProjectInfo
) -> None:
    vera = get_user_model().objects.create_user(username="vera")
    url = f"/admin/auth/user/{vera.pk}/change/"
    sent = filled(operator, url)
    sent |= {"memberships-0-project": mine.id, "memberships-0-role": "owner"}
    sent |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}

    answer = operator.post(url, sent)

    assert answer.status_code == 302
    assert Membership.objects.get(user=vera).role == "owner"
    page = operator.get(url).content.decode()
    assert "is_staff" not in page
    assert "user_permissions" not in page


def _locks_project(sql: str) -> bool:
    # SQLite has one writer, and a transaction that begins as one.
    if connection.vendor == "sqlite":
        return "records_project" in sql
    return "records_project" in sql and "FOR UPDATE" in sql


def _counts_owners(sql: str) -> bool:
    return "records_membership" in sql and "is_active" in sql and "'owner'" in sql


def _rest() -> dict[str, Any]:
    return {
        **FIGURES,
        "max_catalog_bytes": 0,
        "chars_per_token": 4,
        "safety_multiplier": 1,
        "reserve_tokens": 0,
        "cached_input_cost_usd_per_mtok": 0,
    }


def _csv(rows: list[dict[str, Any]]) -> str:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "\n".join(lines)
