"""Care in a real browser: what somebody writes stays while the page around it moves on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.pages.test_in_chromium import record, sign_in
from tests.support.browser import BrowserPage
from tests.support.server import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def add(page: Any, text: str) -> None:
    page.click("#reminders summary:text-is('Add a reminder')")
    page.fill("#content-new", text)
    page.click("#reminders button:text-is('Add')")
    page.wait_for_selector(f"#reminders .reminders >> text={text}")


def test_an_edit_survives_the_polls_and_is_saved_in_place(
    served: Served, browser_page: BrowserPage
) -> None:
    record(served, id="written-1", conversation="written")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/conversations/written/?project=default")
    add(browser_page, "first")
    add(browser_page, "second")

    browser_page.locator("#reminders summary:text-is('Edit')").first.click()
    edited = browser_page.locator("#reminders textarea[name=content]").first
    edited.fill("first, and more")
    record(served, id="written-2", conversation="written")
    browser_page.wait_for_selector("#live-rest >> text=written-2", timeout=30_000)
    # The part polls too, and waits for who writes in it.
    browser_page.wait_for_timeout(3500)
    assert edited.input_value() == "first, and more"

    browser_page.locator("#reminders button:text-is('Save')").first.click()
    browser_page.wait_for_selector("#reminders .text >> text=first, and more")
    assert browser_page.problems() == []


def test_reminders_are_moved_by_keyboard_and_the_focus_stays(
    served: Served, browser_page: BrowserPage
) -> None:
    record(served, id="moved-1", conversation="moved")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/conversations/moved/?project=default")
    add(browser_page, "one")
    add(browser_page, "two")
    down = browser_page.locator("#reminders button[value=down]").first
    name = down.get_attribute("id")

    down.focus()
    browser_page.keyboard.press("Enter")

    texts = browser_page.page.locator("#reminders .text")
    expect(texts).to_have_text(["two", "one"])
    expect(browser_page.page.locator(":focus")).to_have_id(name)
    assert browser_page.problems() == []


def test_a_preview_follows_what_is_typed(served: Served, browser_page: BrowserPage) -> None:
    record(served, id="typed-1")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/settings/care/?project=default")

    browser_page.fill("#soft_text", "Full to {percent} %.")
    browser_page.wait_for_selector("#preview-soft >> text=Full to 56 %.")
    browser_page.fill("#soft_text", "Full to {share} %.")
    browser_page.wait_for_selector("#preview-soft >> text=Unknown placeholder")

    assert browser_page.input_value("#soft_text") == "Full to {share} %."
    assert browser_page.problems() == []


def test_a_reminder_and_a_clear_take_no_script(
    served: Served, new_page: Callable[..., Any]
) -> None:
    record(served, id="plain-care-1", conversation="plain-care")
    page = new_page(java_script_enabled=False)
    sign_in(page, served)
    page.goto(f"{served.base_url}/conversations/plain-care/?project=default")

    add(page, "kept without scripts")
    page.click("summary:text-is('Clear now')")
    page.click("text=Clear and open round 2")

    page.wait_for_selector("text=Cleared: round 2 is open.")
    assert page.locator("text=kept without scripts").first.is_visible()


def test_the_focus_follows_what_was_written(served: Served, browser_page: BrowserPage) -> None:
    record(served, id="focus-1", conversation="focus")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/conversations/focus/?project=default")

    browser_page.click("#reminders summary:text-is('Add a reminder')")
    browser_page.fill("#content-new", "first")
    # As somebody leaves it who drags its handle: no style is copied to the new one.
    browser_page.evaluate("document.getElementById('content-new').style.height = '300px'")
    browser_page.click("#reminders button:text-is('Add')")
    browser_page.wait_for_selector("#reminders .reminders >> text=first")
    # The focus comes when the swap has settled.
    expect(browser_page.page.locator("#reminders li")).to_be_focused()

    browser_page.click("#reminders summary:text-is('Delete')")
    browser_page.click("#reminders button.danger:text-is('Delete reminder 1')")
    browser_page.wait_for_selector("#reminders >> text=No reminder yet")
    expect(browser_page.page.locator("summary:text-is('Add a reminder')")).to_be_focused()
    assert browser_page.problems() == []


def test_the_level_goes_on_while_a_part_is_open(served: Served, browser_page: BrowserPage) -> None:
    # With gpt-4o caution is above 100,000 tokens.
    record(served, id="open-1", conversation="open")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/conversations/open/?project=default")
    browser_page.click("#live summary:text-is('As a table')")
    record(served, id="open-2", conversation="open", usage={"prompt_tokens": 105_000})

    browser_page.wait_for_selector("#live-level .is-caution", timeout=30_000)

    # The parts ask by themselves, the level before or after the one that is held.
    browser_page.wait_for_selector(".live.held")
    assert browser_page.locator("#live details[open]").count() == 1
    assert browser_page.locator("#live a[href^='/calls/open-2/?']").count() == 0
    browser_page.click("#live summary:text-is('As a table')")
    browser_page.wait_for_selector("#live a[href^='/calls/open-2/?']", state="attached")
    browser_page.wait_for_selector(".live.held", state="hidden")


def test_a_faulty_text_is_marked_while_it_is_typed(
    served: Served, browser_page: BrowserPage
) -> None:
    record(served, id="marked-1")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/settings/care/?project=default")

    browser_page.fill("#soft_text", "Full to {share} %.")
    browser_page.wait_for_selector("#soft_text[aria-invalid=true]")
    browser_page.wait_for_selector("#reset-soft >> text=Use the shipped text again")
    browser_page.fill("#soft_text", "Full to {percent} %.")
    browser_page.wait_for_selector("#soft_text:not([aria-invalid])")
