"""Unseen characters in names are shown on every page, and never changed where they are stored."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from helmdash.core.access.permissions import SHELL, MemberRole
from helmdash.operations.access import keys, members
from helmdash.pages.visibility import is_suspect, visible_page
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import ApiKey, Budget, Call, Conversation, Fit, Project
from tests.factories import make_capture, record
from tests.plan_rows import make_plan

# One of each kind: C0, DEL, C1, direction for a while and for good, isolates, marks, no width.
UNSEEN = "\x1b\x7f\x9b\u202e\u202a\u2066\u2069\u200e\u061c\u200b\u200d\ufeff\u2028\u00ad"
NAME = f"na{UNSEEN}me"
_RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff]"
)
PAGES = [
    "/",
    "/conversations/",
    "/conversations/talk/",
    "/calls/",
    "/calls/call/",
    "/plans/",
    "/models/",
    "/trims/",
    "/budgets/",
    "/catalog/",
    "/settings/",
    "/connect/",
    "/settings/gateway/",
    "/settings/upstreams/",
    "/admin/",
    "/admin/records/call/",
    "/admin/records/apikey/",
    "/admin/records/budget/",
    "/admin/records/budget/deleted/",
    "/admin/records/project/",
    "/admin/records/conversation/",
    "/admin/records/membership/",
    "/admin/auth/user/",
    f"/calls/{NAME}/",  # not there: the page says which one
    f"/?project={NAME}",
]


@pytest.fixture
def named(project: ProjectInfo) -> ProjectInfo:
    """Rows of everything whose names hold one of each kind."""
    record(
        make_capture(id="call", pack=NAME, purpose=NAME[:40], correlation_id=NAME), project=project
    )
    for model in (Call, Conversation):
        model.objects.update(model=NAME)
    Project.objects.update(name=NAME)
    keys.create_key(actor=SHELL, name=NAME, project=project.slug)
    for key in (NAME, f"{NAME}-gone"):
        figures = {"input_tokens": 1, "output_tokens": 1, "tier": "C"}
        Budget.objects.create(key=key, evidence=NAME, **figures)
    Budget.objects.get(key=f"{NAME}-gone").delete()
    make_plan(project, model=NAME)
    Fit.objects.update(model=NAME, caller=NAME)
    User.objects.create(username=NAME)
    members.set_member(actor=SHELL, user=NAME, project=project.slug, role=MemberRole.VIEWER)
    return project


@pytest.mark.parametrize("page", PAGES)
def test_no_page_holds_what_nobody_sees(owner: Client, named: ProjectInfo, page: str) -> None:
    html = owner.get(page).content.decode()

    # Suggestions are shown as they are.
    assert _RAW.findall("".join(re.findall(r"<datalist.*?</datalist>", html, re.DOTALL))) == []
    # A form sends back what is stored.
    shown = re.sub(r'\bvalue="[^"]*"', "", html)
    assert _RAW.findall(shown) == []
    # These name nothing that a client can choose.
    assert "\\u202e" in html or page in ("/admin/", "/trims/", "/settings/upstreams/")


def test_what_a_form_sends_back_is_what_is_stored(owner: Client, named: ProjectInfo) -> None:
    html = owner.get("/settings/").content.decode()
    (sent,) = {unescape(each) for each in re.findall(r'name="name" value="(na[^"]*)"', html)}

    owner.post("/settings/keys/revoke/", {"name": sent})

    assert sent == NAME
    key = ApiKey.objects.get(name=NAME)
    assert key.revoked_at is not None
    assert Project.objects.get(pk=named.id).name == NAME


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>a\u202eb</p>", "<p>a\\u202eb</p>"),
        ('<input value="\u202e" title="\u202e">', '<input value="\u202e" title="\\u202e">'),
        ("<textarea>\u202e\x1b</textarea>\x1b", "<textarea>\u202e\x1b</textarea>\\x1b"),
        # In a text, languages and emoji need joiners; nobody needs to turn it around.
        ("<pre>\u200d\n\u202e</pre>\u200d", "<pre>\u200d\n\\u202e</pre>\\u200d"),
        # A name has one line.
        ('<a class="id big" href="x">a\nb</a>\n', '<a class="id big" href="x">a\\nb</a>\n'),
        ('<td title="a\tb">\t</td>', '<td title="a\\tb">\t</td>'),
        (
            '<datalist><option value="a"><option value="\u202eb"><option value="c"></datalist>',
            '<datalist><option value="a"><option value="c"></datalist>',
        ),
        ("<p>🙂 naïve 中文 …–</p>", "<p>🙂 naïve 中文 …–</p>"),
    ],
)
def test_each_part_of_a_page_is_shown_in_its_way(html: str, shown: str) -> None:
    assert visible_page(html) == shown
    assert is_suspect(html) is (html != shown)


def test_no_page_of_plain_names_is_changed(owner: Client, filled: str) -> None:
    for page in (
        "/",
        "/calls/",
        "/calls/talk-0/",
        "/conversations/talk/",
        "/settings/",
        "/models/",
    ):
        html = owner.get(page).content.decode()

        assert visible_page(html) == html
