"""Trying a plan in a real browser: it is followed while it is made, and its pages break no rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.pages.test_in_chromium import look_at, sign_in
from tests.support.browser import BrowserPage
from tests.support.server import Served
from tests.support.upstreams.scripted import Heard, Said, run_scripted

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CATALOG = {
    "packs": [
        {"name": f"tool.{n}", "description": f"Does the thing number {n}. " * 6} for n in range(60)
    ],
    "pipelines": [{"id": "write-blog", "name": "Write a blog", "description": "Writes it."}],
}
STEPS = [
    {"tool": "tool.1", "args": {"of": "what"}, "rationale": "It comes first."},
    {"tool": "made.up", "args": {}, "rationale": "It would help."},
]


def script(heard: Heard) -> Said:
    """Takes so long that the page has polled; the one called mute says nothing."""
    if "mute" in heard.model:
        return Said(content="")
    if heard.is_filter:
        return Said(content='{"ids": [1, 2]}')
    return Said(content=json.dumps({"steps": STEPS, "reasoning": "In order."}), delay_s=5.0)


@pytest.fixture(scope="module")
def place(serve: Callable[..., Served]) -> Iterator[Served]:
    with run_scripted(script) as model:
        yield serve(
            OPENROUTER_API_KEY="sk-or-none-0123456789",
            OPENROUTER_BASE_URL=model.base_url,
            HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        )


def test_a_plan_is_followed_while_it_is_made(place: Served, browser_page: BrowserPage) -> None:
    page = browser_page
    sign_in(page, place)
    page.keyboard.press("g")
    page.keyboard.press("y")
    page.wait_for_url("**/try/plan/?project=*")
    page.fill("#id_intent", "Do the thing number 1, and then something that nobody has made up")
    page.fill("#id_model", "nobody/has-it")
    if not page.is_visible("#id_catalog"):
        page.click("summary:has-text('More')")
    page.fill("#id_catalog", json.dumps({"packs": [{"name": "a"}, {"name": "a"}]}))
    page.click("main .main-button")
    page.wait_for_selector("text=No upstream serves the model")
    page.wait_for_selector("text=is already used by")  # all of it at once
    page.forget_problems()  # browsers report a 422

    page.fill("#id_catalog", json.dumps(CATALOG))
    page.fill("#id_model", "openrouter/openai/gpt-4o")
    page.select_option("#id_prompt_variant", "full_steps")
    page.click("main .main-button")
    page.wait_for_url("**/plans/plan_*/?project=*")

    page.wait_for_selector("h2:text-is('Under way')")
    page.wait_for_selector("h2:text-is('Steps')", timeout=30_000)
    assert page.locator(".steps > li").count() == 2
    assert page.locator(".steps .is-gap").count() == 1
    assert page.locator("#live[data-etag]").count() == 0
    page.click("button:text-is('Not followed')")
    page.wait_for_selector("text=the plan was not followed")
    assert page.problems() == []


def test_the_pages_of_plans_are_clean_in_both_schemes_and_fit_320_px(
    place: Served, browser_page: BrowserPage
) -> None:
    sign_in(browser_page, place)
    for model in ("openrouter/openai/gpt-4o", "openrouter/mute/small:free"):
        browser_page.goto(f"{place.base_url}/try/plan/")
        browser_page.fill("#id_intent", "Do the thing number 1")
        browser_page.fill("#id_model", model)
        if not browser_page.is_visible("#id_catalog"):
            browser_page.click("summary:has-text('More')")
        browser_page.fill("#id_catalog", json.dumps(CATALOG))
        browser_page.click("main .main-button")
        browser_page.wait_for_url("**/plans/plan_*/?project=*")
        browser_page.wait_for_selector("#live:not([data-etag])", timeout=30_000)
    browser_page.goto(f"{place.base_url}/plans/")
    rows = browser_page.locator("[data-row]")
    plans = [rows.nth(at).get_attribute("href") for at in range(2)]

    paths = ["/plans/", "/models/", *plans, "/try/plan/?like=" + plans[0].split("/")[2]]
    faults = {path: look_at(browser_page, place.base_url + path) for path in paths}

    assert {path: found for path, found in faults.items() if found} == {}


def test_a_plan_can_be_tried_without_scripts(
    place: Served, new_page: Callable[..., BrowserPage]
) -> None:
    page = new_page(java_script_enabled=False)
    sign_in(page, place)
    page.goto(f"{place.base_url}/try/plan/")
    page.fill("#id_intent", "Do the thing number 1")
    page.fill("#id_model", "openrouter/mute/small:free")
    if not page.is_visible("#id_catalog"):
        page.click("summary:has-text('More')")
    page.fill("#id_catalog", json.dumps(CATALOG))
    page.click("main .main-button")
    page.wait_for_url("**/plans/plan_*/?project=*")

    for _ in range(40):
        if not page.is_visible("text=Look again"):
            break
        page.wait_for_timeout(250)
        page.follow("text=Look again")
    assert page.is_visible("text=Advice:")
