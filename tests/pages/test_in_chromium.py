"""The pages in a real browser: they turn live, obey the keyboard, and break no rule."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.support.browser import BrowserPage
from tests.support.server import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Every page with its demo data; ids are looked up on the lists.
PAGES = [
    "/",
    "/conversations/",
    "/calls/",
    "/plans/",
    "/models/",
    "/trims/",
    "/budgets/?model=openrouter/meta-llama/llama-3.3-70b-instruct:free",
    "/budgets/edit/?row=1&row=2",
    "/budgets/edits/",
    "/weekly/",
    "/catalog/",
    "/try/fit/",
    "/try/plan/",
    "/try/route/",
    "/settings/",
    "/settings/care/",
    "/settings/members/",
    "/settings/alerts/",
    "/settings/alerts/rule/?kind=failing",
    "/settings/audit/",
    "/profile/",
    "/conversations/move-billing-to-v2/",
    "/conversations/inventory-audit/",
    "/conversations/contract-review/",
    "/calls/demo-meeting-minutes-local-07/",
    "/connect/",
    "/settings/gateway/",
    "/settings/upstreams/",
    "/settings/recorder/",
    "/help/",
    "/find/?q=move",
]

_ANOTHER_SETTLES = """
document.addEventListener("htmx:beforeSend", () => document.body.dispatchEvent(
  new CustomEvent("htmx:afterSettle",
    {bubbles: true, detail: {requestConfig: {elt: document.querySelector("#reds")}}}
)), {once: true})
"""
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_COVERED = """
[...document.querySelectorAll(".code")].filter((each) => {
  const [text, button] = ["pre", "button"].map(
    (name) => each.querySelector(name).getBoundingClientRect());
  return button.bottom > text.top && button.right > text.left
    && button.top < text.bottom && button.left < text.right;
}).map((each) => each.querySelector("pre").id)
"""
# Cells of cards: what reaches out of its table, and a sentence whose words became rows of a grid.
_BROKEN_CARDS = """
[...document.querySelectorAll("main .scroll > table.stacked")].flatMap((table) => {
  const { right } = table.parentElement.getBoundingClientRect();
  const isOut = (each) => each.getBoundingClientRect().right > right + 1;
  const ofSentence = (node) => node.nodeType === Node.TEXT_NODE
    ? node.textContent.trim() : node.matches("a, b, span:not([class])");
  const isTorn = (cell) => getComputedStyle(cell).display === "grid"
    && [...cell.childNodes].filter(ofSentence).length > 1;
  return [...table.querySelectorAll("td[data-name]")]
    .filter((cell) => isTorn(cell) || [...cell.querySelectorAll("*")].some(isOut))
    .map((cell) => cell.dataset.name);
})
"""


_TOO_WIDE = """
[...document.querySelectorAll("main .scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.getAttribute("aria-label"))
"""

# --ink of tokens.css in the light scheme.
_INK = "rgb(21, 32, 43)"

# By server: the cookies of a person who is signed in; and who holds the demo data. A
# password takes 0.3 s to hash, the demo data two to load.
_signed_in: dict[Path, Any] = {}
_with_demo: set[Path] = set()


def sign_in(page: BrowserPage, served: Served) -> None:
    """Be on the first page as a person who has just signed in: the default project is in view."""
    if cookies := _signed_in.get(served.data_dir):
        page.context.add_cookies(cookies)
        page.goto(f"{served.base_url}/?project=default")
        return
    page.goto(f"{served.base_url}/login/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", served.admin_password)
    page.follow("main button")
    _signed_in[served.data_dir] = page.context.cookies()


def record(served: Served, **call: object) -> None:
    body = {"model": "openai/gpt-4o", "usage": {"prompt_tokens": 96_000}, **call}
    url = f"{served.base_url}/api/v1/calls"
    httpx.post(url, json=body, headers=served.headers).raise_for_status()


@pytest.fixture
def demo(served: Served, browser_page: BrowserPage) -> BrowserPage:
    """Signed in, with the demo project loaded and in view."""
    sign_in(browser_page, served)
    if served.data_dir in _with_demo:
        browser_page.goto(f"{served.base_url}/?project=demo")
    else:
        browser_page.goto(f"{served.base_url}/settings/")
        browser_page.click("text=Load demo data")
        _with_demo.add(served.data_dir)
    browser_page.wait_for_selector("text=Nothing on this page is yours")
    return browser_page


def all_pages(page: BrowserPage, served: Served) -> list[str]:
    """The fixed pages, and the first of each list."""
    paths = list(PAGES)
    for listing in ("/conversations/", "/calls/", "/trims/"):
        page.goto(served.base_url + listing)
        paths.append(page.locator("[data-row]").first.get_attribute("href"))
    return paths


def test_the_first_page_turns_live_when_its_snippet_is_run(
    serve: Callable[..., Served], browser_page: BrowserPage
) -> None:
    served = serve()
    sign_in(browser_page, served)
    browser_page.follow("text=Make a key for this snippet")
    snippet = browser_page.locator("#python").inner_text()
    # The key is shown once: two polls later it is still there.
    browser_page.wait_for_timeout(7000)
    assert browser_page.locator("#python").inner_text() == snippet

    subprocess.run([sys.executable, "-c", snippet], check=True, capture_output=True, timeout=30)

    browser_page.wait_for_selector("h1:text-is('Overview')", timeout=30_000)
    assert browser_page.locator("#live >> text=hello").first.is_visible()
    assert browser_page.problems() == []


# In parts: axe takes some seconds for a page, and a test has three minutes.
@pytest.mark.parametrize("part", range(4))
def test_every_page_is_clean_in_both_schemes_and_fits_320_px(
    demo: BrowserPage, served: Served, part: int
) -> None:
    paths = all_pages(demo, served)[part::4]

    faults = {path: look_at(demo, served.base_url + path) for path in paths}

    assert {path: found for path, found in faults.items() if found} == {}


def look_at(page: BrowserPage, url: str) -> list[str]:
    """What is wrong with a page, in both schemes and at 320 px, with all its parts unfolded."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")
    page.goto(url)
    page.evaluate("document.querySelectorAll('main details').forEach(part => part.open = true)")
    found = page.accessibility()
    page.emulate_media(color_scheme="dark")
    found += page.accessibility(colours_alone=True)
    page.set_viewport_size({"width": 320, "height": 700})
    if page.evaluate(_WIDER):
        found.append("scrolls sideways at 320 px")
    if broken := page.evaluate(_BROKEN_CARDS):
        found.append(f"cells of cards are broken: {broken}")
    if hidden := page.evaluate(_COVERED):
        found.append(f"buttons lie above what they copy: {hidden}")
    return found + page.problems()


def test_whoever_sent_a_form_that_is_refused_goes_on_at_what_is_wrong(
    served: Served, browser_page: BrowserPage
) -> None:
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/settings/?project=default")
    browser_page.fill("#id_name", "laptop")
    browser_page.fill("#id_expires", "soon")
    with browser_page.expect_navigation():
        browser_page.click("text=Create key")

    expect(browser_page.locator("#id_expires")).to_be_focused()
    assert browser_page.input_value("#id_name") == "laptop"


def test_long_tables_are_folded_until_somebody_is_led_to_them(
    served: Served, browser_page: BrowserPage
) -> None:
    for number in range(41):
        record(served, id=f"of-model-{number}", model=f"acme/model-{number}")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/models/?project=default")
    speed = browser_page.locator("details[data-fold=speed]")

    expect(speed).not_to_have_attribute("open", "")
    browser_page.click(".jump >> text=Latency")
    expect(speed).to_have_attribute("open", "")


def test_a_list_begins_on_a_phones_first_screen_and_filters_unfold(
    demo: BrowserPage, served: Served
) -> None:
    demo.set_viewport_size({"width": 390, "height": 844})
    demo.goto(f"{served.base_url}/conversations/?project=demo")
    assert demo.locator("[data-row]").first.bounding_box()["y"] < 844

    demo.click("text=Filters")
    with demo.expect_response(lambda answer: "level=critical" in answer.url):
        demo.select_option("#id_level", "critical")
    expect(demo.locator("#id_level")).to_be_visible()

    # What is folded away on a phone is there on what it is turned to.
    demo.click("text=Filters")
    expect(demo.locator("#id_level")).to_be_hidden()
    demo.set_viewport_size({"width": 1000, "height": 390})
    expect(demo.locator("#id_level")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_what_stands_close_together_is_large_enough_to_hit(
    demo: BrowserPage, served: Served, width: int
) -> None:
    """24 pixels, where nothing else is so near (WCAG 2.2, 2.5.8)."""
    demo.set_viewport_size({"width": width, "height": 844})
    links = ".row-links a, .query > a" + (", .jump a" if width < 864 else "")

    for path in ("/budgets/", "/conversations/", "/conversations/move-billing-to-v2/", "/models/"):
        demo.goto(f"{served.base_url}{path}?project=demo")
        heights = demo.locator(f"main :is({links})").evaluate_all(
            "all => all.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
        )
        assert (path, [each for each in heights if each < 23.5]) == (path, [])


def test_a_phone_reads_a_conversation_without_scrolling_sideways(
    demo: BrowserPage, served: Served
) -> None:
    """What the cache gave is the fourth of eight columns: it lay out of sight."""
    demo.set_viewport_size({"width": 390, "height": 844})
    demo.goto(f"{served.base_url}/conversations/move-billing-to-v2/")
    demo.evaluate("document.querySelectorAll('main details').forEach(part => part.open = true)")

    assert demo.evaluate(_TOO_WIDE) == []
    cached = demo.locator("td[data-name='From cache']").first.bounding_box()
    assert cached["x"] + cached["width"] <= 390


def test_words_without_an_end_take_several_lines(served: Served, browser_page: BrowserPage) -> None:
    """Ids, models and what providers say have no blanks, and may be as long as the API takes."""
    name, model = "c" * 255, "acme/" + "m" * 120
    dropped = {"before_bytes": 9, "after_bytes": 1, "dropped": ["d" * 200]}
    said = {"error_code": "E" * 128, "error_message": f"the upstream said {'x' * 2000}"}
    record(served, id="long-words", conversation=name, model=model, trim=dropped)
    record(served, id="f" * 128, conversation=name, model=model, http_status=500, **said)
    sign_in(browser_page, served)

    wide = {}
    for path in (
        "/calls/long-words/",
        f"/calls/{'f' * 128}/",
        f"/calls/?query=x:{'y' * 200}",
        f"/conversations/{name}/",
        f"/budgets/of-conversation/{name}/",
    ):
        for width in (1280, 320):
            browser_page.set_viewport_size({"width": width, "height": 800})
            browser_page.goto(f"{served.base_url}{path}")
            if over := browser_page.evaluate(_WIDER):
                wide[path[:30], width] = over

    assert wide == {}


def test_names_from_right_to_left_leave_the_order_of_a_row_alone(
    served: Served, browser_page: BrowserPage
) -> None:
    record(served, id="rtl", conversation="rtl", model="acme/نموذج", pack="تلخيص", purpose="بحث")
    sign_in(browser_page, served)

    browser_page.goto(f"{served.base_url}/calls/?project=default&conversation=rtl")
    row = browser_page.locator('tr:has([data-row="rtl"])')
    begins = [row.get_by_text(name).bounding_box()["x"] for name in ("نموذج", "بحث", "تلخيص")]
    assert begins == sorted(begins)

    browser_page.goto(f"{served.base_url}/query/calls/?project=default&conversation=rtl")
    name = browser_page.locator("dd a", has_text="تلخيص")
    count = name.locator("+ span")
    assert name.bounding_box()["x"] < count.bounding_box()["x"]


def test_added_columns_take_a_line_each_on_a_phone(demo: BrowserPage, served: Served) -> None:
    demo.set_viewport_size({"width": 390, "height": 844})
    # Without the time, which is the last one else: that goes to the first line.
    demo.goto(f"{served.base_url}/calls/?project=demo&columns=latency&columns=provider")
    boxes = [
        demo.locator(f"main tbody tr:first-child {part}").first.bounding_box()
        for part in ("th", "td.added", "td.added + td.added")
    ]

    assert max(each["height"] for each in boxes[1:]) < 30
    ends = [each["y"] + each["height"] for each in boxes]
    assert [each["y"] for each in boxes[1:]] >= ends[:2]


def test_saved_views_are_renamed_on_a_phone(demo: BrowserPage, served: Served) -> None:
    demo.goto(f"{served.base_url}/calls/?project=demo&level=critical")
    demo.click("summary:text-is('Save view')")
    demo.fill("form[action*='/views/calls/'] input[name=name]", "What needs me")
    demo.follow("form[action*='/views/calls/'] button")

    assert look_at(demo, f"{served.base_url}/views/calls/?project=demo") == []
    name, field = (
        demo.locator(f"main tbody {part}").bounding_box() for part in ("th a", "input[name=name]")
    )
    assert name["height"] < 30
    assert name["y"] + name["height"] <= field["y"]
    # The server is shared: other tests look for names.
    demo.follow("main tbody button[value=delete]")
    expect(demo.page.locator("main")).to_contain_text("No view is saved yet.")


def test_the_sign_in_page_is_clean_in_both_schemes(
    served: Served, browser_page: BrowserPage
) -> None:
    assert look_at(browser_page, f"{served.base_url}/login/") == []


def test_keys_move_search_and_help(demo: BrowserPage, served: Served) -> None:
    demo.keyboard.press("g")
    demo.keyboard.press("l")
    demo.wait_for_url("**/calls/?project=demo")

    rows = demo.locator("[data-row]")
    demo.keyboard.press("j")
    demo.keyboard.press("j")
    assert rows.nth(1).evaluate("row => row === document.activeElement")
    demo.keyboard.press("k")
    assert rows.nth(0).evaluate("row => row === document.activeElement")

    demo.keyboard.press("?")
    assert demo.locator("dialog#help").is_visible()
    demo.keyboard.press("Escape")
    assert not demo.locator("dialog#help").is_visible()

    demo.keyboard.press("/")
    assert demo.locator("#id_q").evaluate("field => field === document.activeElement")
    # In a field, keys are text.
    demo.keyboard.type("g?")
    assert demo.locator("#id_q").input_value() == "g?"

    href = rows.nth(0).get_attribute("href") if rows.count() else None
    assert href is None or href.startswith("/calls/")

    # A curve is read by the arrows, and Enter opens the call.
    demo.goto(f"{served.base_url}/conversations/move-billing-to-v2/?project=demo")
    demo.locator(".curves > svg[role=slider]:visible").focus()
    demo.keyboard.press("Home")
    expect(demo.page.locator(".tip")).to_contain_text("Generation 1 ")
    demo.keyboard.press("ArrowRight")
    expect(demo.page.locator(".tip")).to_contain_text("Generation 2 ")
    demo.keyboard.press("Enter")
    demo.wait_for_url("**/calls/demo-move-billing-to-v2-02/**")
    assert demo.problems() == []


def test_a_row_opens_beside_its_list_and_goes_on_to_its_neighbours(
    demo: BrowserPage, served: Served
) -> None:
    demo.goto(f"{served.base_url}/calls/?project=demo")
    names = demo.locator("#live [data-row]").evaluate_all(
        "rows => rows.map(row => row.dataset.row)"
    )
    title = demo.page.locator("#panel-title")

    demo.keyboard.press("j")
    demo.keyboard.press("Enter")
    expect(title).to_have_text(names[0])
    expect(title).to_be_focused()
    assert demo.accessibility() == []
    demo.keyboard.press("j")
    expect(title).to_have_text(names[1])
    expect(demo.page.locator("[data-row][aria-current]")).to_have_text(names[1])
    # The list is drawn anew below it; a reload and a sent link show the same.
    demo.evaluate("htmx.trigger(document.body, 'tick')")
    demo.reload()
    expect(title).to_have_text(names[1])

    demo.keyboard.press("Escape")
    expect(title).to_be_hidden()
    expect(demo.page.locator(f'[data-row="{names[1]}"]')).to_be_focused()
    demo.go_back()
    expect(title).to_be_visible()
    # At once: an answer that is under way must not open it again.
    demo.go_forward()
    expect(title).to_be_hidden()
    assert demo.problems() == []


def test_a_key_leads_to_an_id_by_how_it_begins(demo: BrowserPage, served: Served) -> None:
    demo.goto(f"{served.base_url}/calls/?project=demo")
    demo.locator("#id_q").focus()
    text = demo.page.get_by_role("combobox", name="Go to a page, an id, a model or an action")
    chosen = demo.locator('#palette-found [aria-selected="true"]')

    demo.keyboard.press("Control+k")
    expect(text).to_be_focused()
    expect(chosen).to_have_text("Overview")
    demo.keyboard.press("ArrowDown")
    expect(chosen).to_have_text("Conversations")
    assert demo.accessibility() == []
    demo.keyboard.press("Escape")
    expect(demo.page.locator("#id_q")).to_be_focused()

    demo.keyboard.press("Control+k")
    demo.keyboard.type("move-billing")
    expect(chosen).to_contain_text("move-billing-to-v2")
    demo.keyboard.press("Enter")
    demo.wait_for_url("**/conversations/move-billing-to-v2/?project=demo")
    assert demo.problems() == []


def test_a_filter_changes_the_list_and_the_address(demo: BrowserPage, served: Served) -> None:
    demo.goto(f"{served.base_url}/calls/")
    everything = demo.locator("[data-row]").count()

    demo.select_option("#id_level", "critical")
    demo.wait_for_url(re.compile(r"/calls/\?.*project=demo&level=critical$"))

    levels = demo.locator("#live tbody .level").all_inner_texts()
    assert levels
    assert set(levels) == {"Critical"}
    assert len(levels) < everything

    demo.go_back()
    # Not wait_for_function: it evaluates a string in the page, which our own policy forbids.
    expect(demo.page.locator("[data-row]")).to_have_count(everything)
    assert demo.problems() == []


def test_a_list_shows_a_new_call_by_itself_and_keeps_the_focus(
    served: Served, browser_page: BrowserPage
) -> None:
    record(served, id="before-it", conversation="live")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/calls/?project=default&conversation=live")
    browser_page.keyboard.press("j")

    record(served, id="after-it", conversation="live")

    browser_page.wait_for_selector("text=after-it", timeout=30_000)
    # The focus comes when the swap has settled.
    expect(browser_page.page.locator(":focus")).to_have_attribute(
        "href", "/calls/before-it/?project=default"
    )
    assert browser_page.problems() == []


def test_a_page_that_lost_its_server_says_so(served: Served, browser_page: BrowserPage) -> None:
    record(served, conversation="live")
    sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/calls/?project=default")
    expect(browser_page.page.get_by_role("status")).to_have_text("Live")

    # Not set_offline: it leaves open streams alone.
    os.kill(served.process.pid, signal.SIGSTOP)
    try:
        browser_page.wait_for_selector(".away", state="visible", timeout=30_000)
        assert re.search(r"since \d\d:\d\d:\d\d\.", browser_page.inner_text(".away"))
    finally:
        os.kill(served.process.pid, signal.SIGCONT)
    browser_page.wait_for_selector(".away", state="hidden", timeout=30_000)


def test_a_tab_says_how_much_is_critical_and_may_be_paused(
    served: Served, browser_page: BrowserPage
) -> None:
    full = {"prompt_tokens": 127_000}
    record(served, conversation="first", usage=full)
    sign_in(browser_page, served)
    expect(browser_page.page).to_have_title("(1) Overview · HelmDash", timeout=30_000)
    browser_page.click("text=Pause")

    record(served, conversation="latecomer", usage=full)
    # A stream tells of it within two seconds; nobody asks for it.
    browser_page.wait_for_timeout(3_000)
    assert browser_page.locator("text=latecomer").count() == 0

    browser_page.click("text=Go on")
    browser_page.wait_for_selector("#live >> text=latecomer", timeout=30_000)
    expect(browser_page.page).to_have_title("(2) Overview · HelmDash", timeout=30_000)
    # A form in the part that came anew is sent in place, as the first one's was.
    browser_page.evaluate("window.isTheSame = true")
    browser_page.click(".time [data-range='7d']")
    browser_page.wait_for_url("**range=7d**")
    assert browser_page.evaluate("window.isTheSame")
    assert browser_page.problems() == []


def test_on_paper_a_page_is_light_and_has_nothing_to_press(
    demo: BrowserPage, served: Served
) -> None:
    demo.emulate_media(media="print", color_scheme="dark")
    for path in ("/", "/conversations/move-billing-to-v2/", "/calls/?level=critical", "/weekly/"):
        demo.goto(f"{served.base_url}{path}")
        shown = demo.evaluate(
            "[...document.querySelectorAll('.rail, button, .jump')]"
            ".filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))"
        )
        ink = demo.evaluate("getComputedStyle(document.querySelector('h1')).color")
        assert (path, shown, ink) == (path, [], _INK)
    # What the list was asked for stays.
    demo.goto(f"{served.base_url}/calls/?level=critical")
    shown = demo.evaluate(
        "[...document.querySelectorAll('.filter-row > div')].filter(e => e.checkVisibility())"
        ".map(e => e.querySelector('label').innerText)"
    )
    assert shown == ["Level"]


def test_dragging_over_bars_looks_closer_and_back_is_exact(
    demo: BrowserPage, served: Served
) -> None:
    demo.goto(f"{served.base_url}/calls/?project=demo&range=24h")
    box = demo.locator(".histogram > svg").bounding_box()
    y = box["y"] + 30

    demo.mouse.move(box["x"] + box["width"] * 0.8, y)
    demo.mouse.down()
    demo.mouse.move(box["x"] + box["width"] * 0.95, y, steps=4)
    demo.mouse.up()

    demo.wait_for_url(re.compile(r"range=\d{4}-[^.]+Z\.\.\d{4}-[^.]+Z&project=demo"))
    demo.go_back()
    demo.wait_for_url("**/calls/?project=demo&range=24h")
    expect(demo.page.locator("[data-time]")).to_have_value("24h")
    assert demo.problems() == []


def test_what_unfolds_above_a_list_closes_as_people_expect(
    demo: BrowserPage, served: Served
) -> None:
    """By Escape, which leaves the panel beside the list alone, and by a click elsewhere."""
    demo.goto(f"{served.base_url}/calls/?project=demo")
    demo.locator("[data-row]").first.click()
    panel = demo.locator("#panel")
    expect(panel).to_be_visible()
    columns, calendar = (demo.locator(f"summary:has-text('{name}')") for name in ("Columns", "Cal"))
    opened = demo.locator(".popover[open]")

    columns.click()
    expect(opened).to_have_count(1)
    calendar.click()
    expect(opened.locator("summary")).to_have_text("Calendar")
    demo.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    expect(calendar).to_be_focused()
    expect(panel).to_be_visible()
    columns.click()
    demo.locator("h1").click()
    expect(opened).to_have_count(0)
    demo.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert demo.problems() == []


def test_filters_that_are_applied_twice_are_one_step_to_go_back_from(
    demo: BrowserPage, served: Served
) -> None:
    """Choosing a level applies it; Apply after that made a step back that seemed to do nothing."""
    before = f"{served.base_url}/calls/?project=demo&range=24h"
    demo.goto(before)
    demo.select_option("select[name=level]", "critical")
    demo.wait_for_url("**level=critical**")

    demo.evaluate(
        "void (window.settled = new Promise("
        "done => addEventListener('htmx:afterSettle', () => done(true), { once: true })))"
    )
    demo.click(".filters >> text=Apply")
    assert demo.evaluate("window.settled")
    demo.go_back()

    demo.wait_for_url(before)
    assert demo.problems() == []


def test_a_phone_folds_the_tables_of_models_and_remembers_what_was_opened(
    demo: BrowserPage, served: Served
) -> None:
    """They were 18,800 px of cards."""

    def lie_open() -> list[str]:
        parts = "[...document.querySelectorAll('[data-fold][open]')].map(e => e.dataset.fold)"
        return list(demo.evaluate(parts))

    page = f"{served.base_url}/models/?project=demo"
    demo.goto(page)
    assert lie_open() == ["rates", "usage", "clients", "speed", "latest"]

    demo.set_viewport_size({"width": 390, "height": 844})
    demo.goto(page)
    assert lie_open() == []
    assert demo.evaluate("document.documentElement.scrollHeight") < 5_000
    demo.click("#usage")
    demo.fill("input[name=purpose]", "plan")
    demo.click(".filters >> text=Apply")
    demo.wait_for_url("**purpose=plan**")
    expect(demo.page.locator("[data-fold=usage]")).to_contain_text("full_steps")
    assert lie_open() == ["usage"]
    demo.goto(f"{page}#speed")
    demo.page.reload()
    assert lie_open() == ["speed"]
    assert demo.problems() == []


def test_a_bar_that_is_followed_by_a_key_leaves_the_focus_among_the_bars(
    demo: BrowserPage, served: Served
) -> None:
    demo.goto(f"{served.base_url}/calls/?project=demo&range=24h")
    demo.locator('[data-zoom] a[tabindex="0"]').focus()
    # What another request brings settles before the answer is there, as a slow one finds.
    demo.evaluate(_ANOTHER_SETTLES)

    demo.keyboard.press("Enter")

    demo.wait_for_url(re.compile(r"range=\d{4}-[^.]+Z\.\.\d{4}-[^.]+Z&project=demo"))
    expect(demo.page.locator("[data-zoom] a:focus")).to_have_count(1)
    assert demo.problems() == []


def test_a_chosen_scheme_survives_a_reload(served: Served, browser_page: BrowserPage) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    sign_in(browser_page, served)
    light = browser_page.evaluate(background)

    browser_page.follow("button:text-is('Dark')")
    dark = browser_page.evaluate(background)
    browser_page.reload()

    assert dark != light
    assert browser_page.evaluate(background) == dark


def test_pages_read_and_filter_without_scripts(
    served: Served, new_page: Callable[..., Any]
) -> None:
    record(served, id="plain-1", conversation="plain")
    page = new_page(java_script_enabled=False)
    sign_in(page, served)

    page.goto(f"{served.base_url}/calls/?project=default")
    page.fill("#id_q", "plain-")
    page.follow("text=Apply")

    assert page.locator("text=plain-1").first.is_visible()
    page.follow(".rail >> text=Help")
    assert page.locator("h1:text-is('Help')").is_visible()
