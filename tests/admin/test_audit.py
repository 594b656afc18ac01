"""The audit log: each change by anybody, with who, from where, before and after, and no secret."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.operations.access import audit_log, keys
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AuditEntry, Budget, BudgetAlias, Membership, Project, Upstream
from tests.admin.forms import filled, text_of
from tests.admin.house import make_project, record
from tests.admin.test_transfer import confirm, preview
from tests.factories import make_capture, sign_in
from tests.pages.hygiene import faults

A = "/admin/records/"
KEY = "sk-very-hidden-0123456789"
PASSWORD = "correct-horse-battery"
ADDRESS = "203.0.113.9"
FIGURES = {"input_tokens": 9_000, "output_tokens": 900, "tier": "C"}


@pytest.fixture
def operator(project: ProjectInfo) -> Client:
    """A superuser's browser, at an address of its own."""
    client = Client(REMOTE_ADDR=ADDRESS)
    client.force_login(get_user_model().objects.create_superuser(username="operator"))
    return client


def told() -> list[str]:
    """The entries since the last time this was asked, oldest first, and takes them away."""
    rows = [
        f"{row.by} {row.way} {row.address or '-'}: {row.kind} {row.action} {row.subject}"
        for row in AuditEntry.objects.order_by("id")
    ]
    AuditEntry.objects.all().delete()
    return rows


def test_what_is_done_on_the_pages_is_noted(operator: Client, project: ProjectInfo) -> None:
    record(make_capture(), project=project)
    get_user_model().objects.create_user(username="vera")
    member = {"user": "vera", "role": "editor"}
    text = {"do": "add", "content": "Note."}
    steps: list[tuple[str, dict[str, Any], list[str]]] = [
        ("/settings/keys/", {"name": "ci", "scopes": "read"}, ["key added ci ("]),
        ("/settings/keys/revoke/", {"name": "ci"}, ["key changed ci ("]),
        ("/settings/members/change/", {"do": "set", **member}, ["member added vera in Default"]),
        # Nothing changes, nothing is told.
        ("/settings/members/change/", {"do": "set", **member}, []),
        ("/settings/members/change/", {"do": "remove", **member}, ["member deleted vera in"]),
        ("/settings/gateway/policy/", {"budget_mode": "warn"}, ["project changed Default"]),
        ("/settings/care/save/", {"remediation": "on"}, ["project changed Default"]),
        ("/care/triage/talk/", {"word": "done"}, ["conversation done talk"]),
        ("/care/change/talk/", text, ["conversation reminded talk"]),
        ("/care/clear/talk/", {}, ["conversation cleared talk"]),
        (
            "/failures/mark/",
            {"cause": "timed_out", "model": "openai/gpt-4o", "state": "muted"},
            ["failures muted timed_out of openai/gpt-4o"],
        ),
        ("/settings/recorder/start/", {"job": "rebuild"}, ["job started rebuild"]),
        # It is not under way: nothing is cancelled.
        ("/settings/recorder/cancel/", {"job": "rebuild"}, []),
        ("/settings/demo/load/", {}, ["demo loaded demo"]),
        ("/settings/demo/remove/", {}, ["demo removed demo"]),
        ("/care/erase/talk/", {"confirm": "talk"}, ["conversation erased (erased)"]),
    ]
    told()

    for address, sent, wanted in steps:
        operator.post(address, {"project": project.slug, **sent})
        found = told()
        assert len(found) == len(wanted), (address, found)
        for entry, want in zip(found, wanted, strict=True):
            assert entry.startswith(f"operator pages 203.0.113.9: {want}")


def test_what_is_done_in_the_admin_is_noted(operator: Client, project: ProjectInfo) -> None:
    given = {"enabled": "on", **FIGURES, "max_catalog_bytes": 0, "chars_per_token": 4}
    given |= {"safety_multiplier": 1, "reserve_tokens": 0, "cached_input_cost_usd_per_mtok": 0}
    operator.post(f"{A}budget/add/", {"key": "acme/one", **given})
    row = Budget.objects.get(key="acme/one")
    operator.post(f"{A}budget/{row.pk}/change/", {"key": "acme/one", **given, "input_tokens": 8})
    version = row.history.earliest().history_id
    operator.post(f"{A}budget/{row.pk}/history/{version}/revert/")
    operator.post(f"{A}budget/{row.pk}/delete/", {"post": "yes"})
    operator.post(f"{A}budgetalias/add/", {"prefix": "acme/uno", "target": "acme/two"})
    alias = BudgetAlias.objects.get(prefix="acme/uno")
    selected = {"_selected_action": [alias.pk], "post": "yes"}
    operator.post(f"{A}budgetalias/", {"action": "delete_selected", **selected})
    operator.post(
        f"{A}upstream/add/",
        {
            "name": "acme",
            "kind": "openai",
            "base_url": "https://a.test/v1",
            "key": KEY,
            "read_timeout_s": 60,
            "enabled": "on",
        },
    )
    project_page = f"{A}project/{project.id}/change/"
    operator.post(project_page, filled(operator, project_page, retention_days=30))
    new = {"username": "vera", "password1": PASSWORD, "password2": PASSWORD}
    operator.post("/admin/auth/user/add/", {**new, "usable_password": "true"})
    vera = get_user_model().objects.get(username="vera")
    again = {"password1": PASSWORD + "2", "password2": PASSWORD + "2", "usable_password": "true"}
    operator.post(f"/admin/auth/user/{vera.pk}/password/", again)
    Membership.objects.create(user=vera, project_id=project.id, role="viewer")
    operator.post(f"/admin/auth/user/{vera.pk}/delete/", {"post": "yes"})

    entries = list(AuditEntry.objects.order_by("id"))
    what = [f"{each.kind} {each.action} {each.subject}" for each in entries]
    assert what == [
        "budget added acme/one",
        "budget changed acme/one",
        "budget changed acme/one",
        "budget deleted acme/one",
        "alias added acme/uno → acme/two",
        "alias deleted acme/uno → acme/two",
        "upstream added acme",
        "project changed Default",
        "account added vera",
        "account changed vera",
        "member deleted vera in Default",
        "account deleted vera",
    ]
    assert {(each.by, each.way, each.address) for each in entries} == {
        ("operator", "admin", "203.0.113.9")
    }
    assert entries[1].changes == [["input_tokens", 9000, 8]]
    assert entries[2].changes == [["input_tokens", 8, 9000]]
    assert entries[7].changes == [["retention_days", None, 30]]
    kept = str([each.changes for each in entries])
    assert "['key_encrypted', None, 'set']" in kept
    for secret in (KEY, PASSWORD, "pbkdf2", Upstream.objects.get().key_encrypted):
        assert secret not in kept


def test_an_import_is_noted_row_by_row_and_its_preview_is_not(
    operator: Client, project: ProjectInfo
) -> None:
    rows = "key,project,input_tokens,output_tokens,tier\nacme/one,,9000,900,C\n"

    seen = preview(operator, rows, "0")
    before = told()
    confirm(operator, seen)

    assert before == []
    assert told() == ["operator admin 203.0.113.9: budget added acme/one"]


def test_programs_and_commands_are_named_with_their_way(project: ProjectInfo) -> None:
    made = keys.create_key(actor=SHELL, name="robot", scopes=("budgets", "record"))
    door = Client(HTTP_AUTHORIZATION=f"Bearer {made.secret}", REMOTE_ADDR=ADDRESS)
    record(make_capture(), project=project)
    told()

    door.post("/api/v1/budgets", {"key": "acme/one", **FIGURES}, content_type="application/json")
    # What agents do to their own conversations is on the timeline of each.
    path = "/api/v1/conversations/talk/reminders"
    noted = door.post(path, {"content": "Note."}, content_type="application/json")
    call_command("member", "add", "vera", "default", stdout=StringIO())

    assert noted.status_code == 201
    assert told() == [
        "API key robot api 203.0.113.9: budget added acme/one",
        "the command line command -: account added vera",
        "the command line command -: member added vera in Default",
    ]


def test_what_fails_leaves_no_entry(operator: Client, project: ProjectInfo) -> None:
    sign_in("boss", project=project, role=MemberRole.OWNER)
    told()

    operator.post("/settings/members/change/", {"do": "remove", "user": "boss"})
    operator.post("/settings/keys/", {"name": "", "scopes": "read"})

    assert (told(), Membership.objects.count()) == ([], 1)


def test_owners_read_their_project_and_superusers_what_concerns_all(
    operator: Client, project: ProjectInfo
) -> None:
    mine = make_project(slug="mine")
    boss = sign_in("boss", project=mine, role=MemberRole.OWNER)
    Project.objects.filter(pk=mine.id).update(soft_text="")
    operator.post(f"{A}budgetalias/add/", {"prefix": "acme/uno", "target": "acme/two"})
    for name in ("one", "two"):
        sent = {"name": f"{name}-key", "scopes": "read", "project": project.slug}
        operator.post("/settings/keys/", sent)
    boss.post("/settings/gateway/policy/", {"budget_mode": "warn"})

    def page(client: Client, query: str = "") -> str:
        answer = client.get(f"/settings/audit/?{query}")
        assert faults(answer.content.decode()) == []
        return text_of(answer)

    theirs, all_of_default = page(boss), page(operator, "project=default")
    assert "project changed Mine" in theirs
    assert "budget_mode observe warn" in theirs
    assert "boss pages, 127.0.0.1" in theirs
    assert ("one-key" in theirs, "acme/uno" in theirs) == (False, False)
    assert ("one-key" in all_of_default, "Mine" in all_of_default.split("every project")[1]) == (
        *(True, False),
    )
    assert "every project" in all_of_default
    only = page(operator, "project=default&kind=key&subject=ONE&by=oper&range=1h")
    assert ("one-key" in only, "two-key" in only) == (True, False)
    assert "Nothing matches" in page(operator, "project=default&by=nobody")
    assert "is not one of" in page(operator, "project=default&kind=shoe")


def test_old_entries_go_after_the_days_of_the_setting(
    operator: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    operator.post("/settings/gateway/policy/", {"budget_mode": "warn"})
    operator.post("/settings/gateway/policy/", {"budget_mode": "observe"})
    AuditEntry.objects.filter(changes__0__2="warn").update(at=now - timedelta(days=401))

    gone = audit_log.forget_old(now=now)

    assert (gone, AuditEntry.objects.count()) == (1, 1)
