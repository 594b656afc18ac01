"""Ids that their clients chose, in links: each leads to what it names, in a browser too."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from hypothesis import given
from hypothesis import strategies as st

from helmdash.pages.addresses import name_project
from helmdash.pages.parts.dot_segments import from_path, to_path
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, record
from tests.pages.test_in_chromium import record as report
from tests.pages.test_in_chromium import sign_in
from tests.support.browser import BrowserPage
from tests.support.server import Served

HOSTILE = [
    ".", "..", "...", "~..", "~", "a/../b", "a/./b", "../x", "x/..", "/lead", "trail/", "a//b",
    "//evil.example/x", "?b=c", "a#b", "a%2Fb", "%2e%2e", "50%", "a\\..\\b", "\"<b>'&", "&#x27;",
    "it's", "&project=other", "über/模型",
]  # fmt: skip


@given(st.text(alphabet="a.~/", max_size=12))
def test_an_id_comes_back_out_of_its_address(name: str) -> None:
    written = to_path(name)

    assert from_path(written) == name
    assert not {".", ".."} & set(written.split("/"))


@pytest.mark.parametrize("page", ["call", "conversation", "call-budget", "reminders"])
@pytest.mark.parametrize("name", HOSTILE)
def test_the_address_of_a_page_is_none_that_a_browser_would_change(page: str, name: str) -> None:
    address = reverse(page, args=[name])

    assert urljoin("http://x/", address) == f"http://x{address}"


@pytest.mark.parametrize("name", HOSTILE)
def test_each_row_leads_to_its_call(owner: Client, project: ProjectInfo, name: str) -> None:
    record(make_capture(id=name), project=project)
    html = owner.get("/calls/").content.decode()
    (link,) = re.findall(r'<a class="id" data-row=[^>]* href="([^"]*)"', html)

    page = owner.get(unescape(link))

    assert page.status_code == 200
    assert f'<h1 class="id">{escape(name)}</h1>' in page.content.decode()


def test_what_stands_for_an_apostrophe_is_no_place_on_a_page() -> None:
    html = '<a href="/calls/it&#x27;s/#texts"></a>'

    assert name_project(html, "p") == '<a href="/calls/it&#x27;s/?project=p#texts"></a>'


@pytest.mark.browser
@pytest.mark.slow
def test_a_browser_follows_each_row_to_its_call(served: Served, browser_page: BrowserPage) -> None:
    for name in HOSTILE:
        report(served, id=name, conversation="hostile-ids")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/calls/?conversation=hostile-ids&project=default")
    rows = browser_page.eval_on_selector_all("a[data-row]", "rows => rows.map(row => row.href)")
    assert len(rows) == len(HOSTILE)

    seen = []
    for address in rows:
        browser_page.goto(address)
        seen.append(browser_page.inner_text("h1"))

    assert sorted(seen) == sorted(HOSTILE)
    assert browser_page.problems() == []
