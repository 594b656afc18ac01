"""How live.js renews a part: a browser without a server, each answer is made up here."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.support.browser import BrowserPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BASE = "http://localhost:9"
SCRIPT = Path(__file__).parents[2] / "static/js/live.js"
PAGE = """<!doctype html><title>Calls</title><link rel="icon" href="data:,">
<div id="contact"><span role="status"></span><span class="at"></span><button></button></div>
<p class="away"><span id="away-since"></span></p>
<div id="live" data-live="/part/" data-etag="one"><textarea id="note"></textarea></div>
<script src="/live.js"></script>"""
NEWS = '<div id="live" data-live="/part/"><textarea id="note"></textarea>News</div>'


class Answers:
    """What the server that is not there says: the part as the test has it, all else as it is."""

    def __init__(self, page: BrowserPage) -> None:
        self.part: dict[str, object] = {"status": 304}
        self.pages = 0
        page.route("**", self._answer)
        page.goto(f"{BASE}/calls/")

    def _answer(self, route: Route) -> None:
        path = route.request.url.removeprefix(BASE)
        if path == "/part/":
            route.fulfill(**self.part)  # type: ignore[arg-type]
        elif path == "/live/":
            route.fulfill(status=204)
        elif path == "/live.js":
            route.fulfill(path=SCRIPT)
        else:
            self.pages += path == "/calls/"
            route.fulfill(body=PAGE, content_type="text/html")


def tick(page: BrowserPage) -> None:
    """Have the page ask for its parts now."""
    with page.expect_response("**/part/"):
        page.evaluate("document.body.dispatchEvent(new Event('tick'))")


@pytest.mark.parametrize("status", [403, 404, 409])
def test_a_page_whose_part_is_gone_is_asked_for_anew(
    browser_page: BrowserPage, status: int
) -> None:
    answers = Answers(browser_page)
    answers.part = {"status": status, "body": NEWS}

    with browser_page.expect_navigation():
        tick(browser_page)

    assert answers.pages == 2
    expect(browser_page.page.locator("#live")).not_to_contain_text("News")


def test_a_part_that_leads_elsewhere_takes_the_page_there(browser_page: BrowserPage) -> None:
    answers = Answers(browser_page)
    answers.part = {"status": 204, "headers": {"HX-Redirect": "/login/?next=%2Fcalls%2F"}}

    tick(browser_page)

    browser_page.wait_for_url(f"{BASE}/login/?next=%2Fcalls%2F")


def test_a_server_that_fails_leaves_the_part_and_is_told(browser_page: BrowserPage) -> None:
    answers = Answers(browser_page)
    answers.part = {"status": 503, "body": NEWS}

    tick(browser_page)

    expect(browser_page.page.get_by_role("status")).to_have_text("Away since")
    assert "News" not in browser_page.inner_text("#live")
    assert answers.pages == 1


def test_a_part_waits_while_somebody_types_in_it(browser_page: BrowserPage) -> None:
    answers = Answers(browser_page)
    answers.part = {"status": 200, "body": NEWS}
    browser_page.click("#note")
    browser_page.page.keyboard.type("half a sen")

    tick(browser_page)

    expect(browser_page.page.locator("body.held-up")).to_be_attached()
    browser_page.page.keyboard.type("tence")
    assert browser_page.input_value("#note") == "half a sentence"
    assert "News" not in browser_page.inner_text("#live")

    browser_page.evaluate("document.activeElement.blur()")
    expect(browser_page.page.locator("#live")).to_contain_text("News")
