"""Every kind of admin page under the Content-Security-Policy, as a browser sees it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.browser import BrowserPage
from tests.support.server import Served

ROW = '[{"key": "acme/from-a-file", "input_tokens": 9000, "output_tokens": 900, "tier": "C"}]'
PLAIN_PAGES = [
    "",
    "records/",
    "records/budget/",
    "records/budget/add/",
    "records/budget/deleted/",
    "records/budget/import/",
    "records/budget/export/",
    "records/budgetalias/",
    "records/apikey/",
    "records/project/",
    "records/upstream/",
    "records/upstream/add/",
    "records/catalogrevision/",
    "records/catalogrevision/add/",
    "records/call/",
    "records/conversation/",
    "records/fit/",
    "records/healthchange/",
    "auth/user/",
    "password_change/",
]


# It has a field of a moment, and choices with buttons beside them.
KEY_FORM = "records/apikey/add/"


def admin(served: Served, path: str) -> str:
    return f"{served.base_url}/admin/{path}"


def sign_in(page: BrowserPage, served: Served) -> None:
    page.goto(f"{served.base_url}/login/?next=/admin/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", served.admin_password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/admin/")


def open_first(page: BrowserPage, served: Served, path: str, *, search: str = "") -> str:
    """Open the first row of a list; gives the address of its page."""
    page.goto(admin(served, f"{path}?q={search}" if search else path))
    page.follow("#result_list tbody th a")
    address: str = page.url.split("?")[0]
    return address


@pytest.mark.browser
def test_no_page_of_the_admin_breaks_the_content_policy(
    served: Served, browser_page: BrowserPage, tmp_path: Path
) -> None:
    page = browser_page
    call = {"model": "acme/unseen", "conversation": "talk", "usage": {"prompt_tokens": 5000}}
    sent = httpx.post(f"{served.base_url}/api/v1/calls", json=call, headers=served.headers)
    assert sent.is_success, sent.text
    sign_in(page, served)
    for path in PLAIN_PAGES:
        answer = page.goto(admin(served, path))
        assert answer is not None
        assert answer.status == 200, path
        assert page.problems() == [], path

    # One budget: its form, a preview, an edit, its history, a revert, its deletion.
    row = open_first(page, served, "records/budget/", search="gpt-4o")
    page.fill("#id_input_tokens", "12345")
    page.click("text=What would this change do?")
    page.wait_for_selector("text=nothing is saved yet")
    page.click("input[name=_save]")
    page.wait_for_selector("text=was changed successfully")
    page.goto(row.replace("/change/", "/history/"))
    page.locator("button:has-text('Revert to this')").first.click()
    page.wait_for_selector("text=Reverted")
    page.goto(row.replace("/change/", "/delete/"))
    page.goto(admin(served, "records/budget/"))
    page.check("#action-toggle")
    page.select_option("select[name=action]", "delete_selected")
    page.click("button[name=index]")
    page.wait_for_selector("text=The fallback was not deleted")
    assert page.problems() == []

    # An import: preview, confirmation.
    file = tmp_path / "rows.json"
    file.write_text(ROW)
    page.goto(admin(served, "records/budget/import/"))
    page.set_input_files("input[type=file]", file)
    assert page.input_value("#id_format") == "1"
    page.click("text=Preview")
    page.wait_for_selector("text=1 new, 0 changed")
    page.click("text=Confirm import")
    page.wait_for_selector("text=Import finished")
    assert page.problems() == []

    # A key: made, shown, looked at, revoked.
    page.goto(admin(served, "records/apikey/add/"))
    page.fill("#id_name", "from-the-browser")
    page.check("input[name=scopes][value=read]")
    page.click("input[name=_save]")
    secret = page.input_value("#secret")
    reads = httpx.get(
        f"{served.base_url}/api/v1/calls", headers={"Authorization": f"Bearer {secret}"}
    )
    assert reads.status_code == 200
    open_first(page, served, "records/apikey/", search="from-the-browser")
    page.goto(admin(served, "records/apikey/?q=from-the-browser"))
    page.check("#action-toggle")
    page.select_option("select[name=action]", "revoke")
    page.click("button[name=index]")
    page.click("text=Revoke 1 key")
    page.wait_for_selector("text=1 revoked")
    assert page.problems() == []

    # Records, a project, and the date widget of a user's form.
    for path in ("records/call/", "records/conversation/", "records/project/"):
        open_first(page, served, path)
        assert page.problems() == [], path
    open_first(page, served, "auth/user/")
    page.locator(".datetimeshortcuts a").first.click()
    page.locator(".date-icon").first.click()
    page.wait_for_selector(".calendarbox")
    assert page.problems() == []


@pytest.mark.browser
def test_pages_are_accessible_and_the_dashboard_is_one_click_away(
    served: Served, browser_page: BrowserPage
) -> None:
    page = browser_page
    sign_in(page, served)

    # Lists, forms, rows of fields below a form, and a page that asks back.
    paths = ("", "records/budget/", "records/budget/add/", "records/call/", KEY_FORM)
    for path in (*paths, "records/project/1/change/", "auth/user/1/delete/"):
        # Loaded in each: the stock admin's links take some tenths of a second to change colour.
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(admin(served, path))
            assert page.accessibility(colours_alone=scheme == "dark") == [], path
        assert page.get_attribute(".rail .brand", "href") == "/"


@pytest.mark.browser
def test_no_form_hides_a_part_of_its_fields_on_a_phone(
    served: Served, browser_page: BrowserPage
) -> None:
    sign_in(browser_page, served)
    browser_page.set_viewport_size({"width": 390, "height": 844})

    browser_page.goto(admin(served, KEY_FORM))

    rows = browser_page.locator(".form-row")
    hidden = "rows => rows.filter(row => row.scrollWidth > row.clientWidth).length"
    assert (rows.count(), rows.evaluate_all(hidden)) == (4, 0)


@pytest.mark.browser
def test_a_key_without_an_end_makes_no_page_of_a_row_wider(
    served: Served, browser_page: BrowserPage
) -> None:
    row = {"key": f"acme/{'k' * 200}", "input_tokens": 9_000, "output_tokens": 900, "tier": "C"}
    url = f"{served.base_url}/api/v1/budgets"
    made = httpx.post(url, json=row, headers=served.headers)
    assert made.is_success, made.text
    sign_in(browser_page, served)

    wide = {}
    for part in ("history", "change", "delete"):
        browser_page.goto(admin(served, f"records/budget/{made.json()['id']}/{part}/"))
        root = "document.documentElement"
        if over := browser_page.evaluate(f"{root}.scrollWidth - {root}.clientWidth"):
            wide[part] = over

    assert wide == {}
    httpx.delete(f"{url}/{made.json()['id']}", headers=served.headers)
