"""Columns that somebody chose and views that somebody saved: in addresses, files, the palette."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from typing import cast

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import MemberRole
from helmdash.operations import saved_views
from helmdash.pages.parts.lists.list_columns import LIST_COLUMNS
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AuditEntry, FirstView, SavedView
from tests.factories import make_project, sign_in
from tests.pages.hygiene import faults
from tests.pages.test_list_queries import rows_of

NOUNS = tuple(LIST_COLUMNS)


def heads_of(html: str) -> list[str]:
    table = re.findall(r'<table class="rows list[^>]*>.*?</thead>', html, re.DOTALL)[-1]
    return [
        re.sub(r"<[^>]*>", "", head)
        for head in re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)
    ]


def last_body(html: str) -> str:
    """The rows of the last table of a list's page; the help has tables of its own."""
    found = re.findall(r'<table class="rows list[^>]*>.*?</thead>(.*?)</tbody>', html, re.DOTALL)
    return str(found[-1])


def file_of(client: Client, address: str) -> str:
    return cast("StreamingHttpResponse", client.get(address)).getvalue().decode()


# --- columns


@pytest.mark.parametrize("noun", NOUNS)
def test_any_columns_can_be_chosen_and_the_files_have_the_same(
    owner: Client, filled: str, noun: str
) -> None:
    known = LIST_COLUMNS[noun]
    everything = [each.name for each in known.columns]
    at_first = heads_of(owner.get(f"/{noun}/").content.decode())
    assert [each.label for each in known.columns if each.shape is None] == [
        head for head in at_first if head in {each.label for each in known.columns}
    ]
    for chosen in (everything, everything[:1], everything[-2:]):
        html = owner.get(f"/{noun}/", {"columns": chosen}).content.decode()
        labels = {each.label for each in known.columns if each.name in chosen}
        heads = heads_of(html)
        fixed = len(at_first) - len(known.first)
        assert (faults(html), set(heads) >= labels) == ([], True)
        assert len(heads) == fixed + len(chosen)
        for row in re.findall(r"<tr>(.*?)</tr>", last_body(html), re.DOTALL):
            assert len(re.findall(r"<t[dh][ >]", row)) == len(heads)
        query = "&".join(f"columns={name}" for name in chosen)
        (first, *_) = csv.DictReader(StringIO(file_of(owner, f"/export/{noun}.csv?{query}")))
        assert tuple(first) == known.paths(chosen)
        line = json.loads(file_of(owner, f"/export/{noun}.ndjson?{query}").splitlines()[0])
        assert set(line) == {path.partition(".")[0] for path in known.paths(chosen)}
        assert line["id"] == first["id"]
    wrong = owner.get(f"/{noun}/", {"columns": "colour"})
    assert (wrong.status_code, "colour is not one of" in wrong.content.decode()) == (400, True)


# --- views


def save(client: Client, noun: str, name: str, address: str, **more: str) -> str:
    """Where it leads."""
    data = {"do": "save", "name": name, "address": address, **more}
    response = client.post(f"/views/{noun}/change/", data)
    assert response.status_code == 302
    return response["Location"]


def tabs_of(client: Client, address: str) -> dict[str, bool]:
    """The names of the views above a list, and whether each is the one that is shown."""
    html = client.get(address).content.decode()
    nav = re.search(r'aria-label="Saved views">(.*?)</nav>', html, re.DOTALL)
    found = re.findall(r"<a ([^>]*)>([^<]*)</a>", nav[1]) if nav else []
    return {name: "aria-current" in attributes for attributes, name in found}


@pytest.mark.parametrize("noun", NOUNS)
def test_a_view_brings_back_all_that_the_address_said(
    owner: Client, filled: str, noun: str
) -> None:
    column = LIST_COLUMNS[noun].first[0]
    said = f"range=7d&sort=&density=compact&query=model%3A*&columns={column}&cursor=x&open=y"
    leads = save(owner, noun, "Mine & <more>", said)

    page = owner.get(leads)
    html = page.content.decode()
    assert (page.status_code, faults(html)) == (200, [])
    assert tabs_of(owner, leads) == {"All": False, "Mine &amp; &lt;more&gt;": True}
    assert tabs_of(owner, f"/{noun}/") == {"All": True, "Mine &amp; &lt;more&gt;": False}
    row = SavedView.objects.get()
    assert row.address.split("&") == [
        f"columns={column}",
        "density=compact",
        "query=model%3A%2A",
        "range=7d",
    ]
    assert "Mine &amp;" in owner.get(f"/views/{noun}/").content.decode()
    found = owner.get("/find/?q=mine").content.decode()
    assert (faults(found), "Saved views" in found) == ([], True)


def test_a_list_opens_with_the_view_that_its_reader_chose(
    owner: Client, viewer: Client, filled: str
) -> None:
    save(owner, "calls", "Failed", "cause=any", shared="1")
    number = str(SavedView.objects.get().pk)
    viewer.post("/views/calls/change/", {"do": "first", "view": number})

    assert viewer.get("/calls/", follow=True).redirect_chain[-1][0].startswith("/calls/?cause=any")
    assert set(rows_of(viewer.get("/calls/", follow=True).content.decode())) == {"cut", "lost"}
    # Whatever else an address says is exact, for others it is as it was, and there is a way out.
    whole = viewer.get("/calls/?view=all").content.decode()
    assert len(rows_of(whole)) == 8
    assert 'href="/calls/?view=all' in viewer.get("/calls/?cause=any").content.decode()
    assert viewer.get("/calls/?level=critical").status_code == 200
    assert owner.get("/calls/").status_code == 200
    viewer.post("/views/calls/change/", {"do": "whole"})
    assert viewer.get("/calls/").status_code == 200


def test_who_may_do_what(owner: Client, editor: Client, viewer: Client, filled: str) -> None:
    """Own views are everybody's own; those of the project are changed by editors and owners."""
    other = sign_in("stranger", project=make_project(slug="other"), role=MemberRole.OWNER)
    save(viewer, "calls", "Own", "level=critical")
    own = SavedView.objects.get(name="Own")
    shared = {"do": "save", "name": "All's", "address": "cause=any", "shared": "1"}
    told = {
        who: client.post("/views/calls/change/", shared).status_code
        for who, client in (("viewer", viewer), ("editor", editor), ("owner", owner))
    }
    assert told == {"viewer": 403, "editor": 302, "owner": 302}
    project_view = SavedView.objects.get(user=None)

    acts = ({"do": "rename", "name": "New"}, {"do": "delete"})
    for act in acts:
        at = {"view": str(project_view.pk)}
        assert viewer.post("/views/calls/change/", {**act, **at}).status_code == 403
    for stranger in (owner, editor, other):
        for act in (*acts, {"do": "first"}):
            stranger.post("/views/calls/change/", {**act, "view": str(own.pk)})
    other.post("/views/calls/change/", {"do": "delete", "view": str(project_view.pk)})
    assert sorted(SavedView.objects.values_list("name", flat=True)) == ["All's", "Own"]
    assert FirstView.objects.count() == 0
    assert "Own" not in tabs_of(owner, "/calls/")
    assert "Own" in tabs_of(viewer, "/calls/")

    editor.post("/views/calls/change/", {"do": "rename", "name": "New", "view": project_view.pk})
    viewer.post("/views/calls/change/", {"do": "delete", "view": own.pk})
    assert [*SavedView.objects.values_list("name", flat=True)] == ["New"]
    log = AuditEntry.objects.filter(kind="view").order_by("id")
    assert [(each.by, each.action, each.subject) for each in log] == [
        ("viewer", "added", "Own (calls, own)"),
        ("editor", "added", "All's (calls, shared)"),
        ("editor", "changed", "New (calls, shared)"),
        ("viewer", "deleted", "Own (calls, own)"),
    ]


def test_a_view_of_another_list_is_none_of_this_one(owner: Client, filled: str) -> None:
    for noun in ("calls", "trims"):
        save(owner, noun, noun, "range=7d")
        own = SavedView.objects.get(name=noun).pk
        owner.post(f"/views/{noun}/change/", {"do": "first", "view": own})
    view = SavedView.objects.get(name="trims").pk
    for act in ({"do": "first"}, {"do": "rename", "name": "New"}, {"do": "delete"}):
        page = owner.post("/views/calls/change/", {**act, "view": view}, follow=True)
        told = "view: is not there any more" in page.content.decode()
        assert (page.status_code, told) == (200, True)
    firsts = FirstView.objects.order_by("noun").values_list("noun", "view__name")
    assert [*firsts] == [("calls", "calls"), ("trims", "trims")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"do": "save", "name": " "}, "name: write 1 to 60 characters"),
        ({"do": "save", "name": "x" * 61}, "name: write 1 to 60 characters"),
        ({"do": "save", "name": "a\nb"}, "name: write 1 to 60 characters"),
        ({"do": "save", "name": "a", "address": "level=blue"}, "blue is not one of"),
        ({"do": "save", "name": "a", "address": "query=colour:red"}, "there is no such field"),
        ({"do": "save", "name": "a", "address": "model=" + "x" * 300}, "at most 255"),
        ({"do": "rename", "view": "1", "name": "a"}, "view: is not there any more"),
        ({"do": "delete", "view": "x"}, "view: send the number of a view"),
        ({"do": "first", "view": "9" * 30}, "view: send the number of a view"),
        ({"do": "paint"}, "do: send one of"),
    ],
)
def test_what_cannot_be_done_says_why(
    owner: Client, filled: str, data: dict[str, str], said: str
) -> None:
    page = owner.post("/views/calls/change/", data, follow=True)

    assert (page.status_code, said in page.content.decode()) == (200, True)
    assert SavedView.objects.count() == 0


def test_views_are_bounded_and_told_by_one_question(
    owner: Client, filled: str, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> int:
        owner.get("/calls/?view=all")
        with CaptureQueriesContext(connection) as ran:
            owner.get("/calls/?view=all")
        return len(ran)

    before = count()
    monkeypatch.setattr(saved_views, "MOST_VIEWS", 3)
    for number in range(4):
        save(owner, "calls", f"view {number}", f"q={number}")
    save(owner, "calls", "view 1", "q=again")

    assert SavedView.objects.count() == 3
    assert SavedView.objects.get(name="view 1").address == "q=again"
    assert count() == before
    assert owner.get("/views/keys/").status_code == 404
    page = owner.get("/calls/?q=again").content.decode()
    assert faults(page) == []


def test_views_of_the_project_stand_before_ones_own(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    """Databases differ in where they put those that have no owner."""
    save(owner, "calls", "b mine", "q=1")
    save(owner, "calls", "c ours", "q=2", shared="1")
    save(owner, "calls", "a mine", "q=3")

    page = owner.get("/calls/?view=all").content.decode()
    (tabs,) = re.findall(r'aria-label="Saved views">(.*?)</nav>', page)
    assert re.findall(r">([^<>]+)</a>", tabs) == ["All", "c ours", "a mine", "b mine"]


@pytest.mark.parametrize("wrong", [{"do": "nope"}, {"do": "save", "address": "range=soon"}])
def test_a_fault_is_told_on_the_page_of_the_forms_project(
    owner: Client, filled: str, wrong: dict[str, str]
) -> None:
    make_project(slug="other")
    owner.get("/calls/?project=default")

    answer = owner.post("/views/calls/change/", {**wrong, "project": "other"})

    assert answer["Location"] == "/views/calls/?project=other"
