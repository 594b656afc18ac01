"""What a browser is made to carry: the weight of each page, what moves on it, and a long-lived tab.

    make bench ARGS=browsing

Each page of the demo is loaded twice in Chromium, first with nothing kept, then as the next one of
a visit: bytes as they are sent, with their heads. While it stands there a call comes in, and
nothing may move. Then one tab sees EVENTS calls come in, and its heap is read before the first of
them and at the end; and the server is stopped and started, killed and frozen, to see when the page
says so.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from bench.table import Row
from tests.pages.test_in_chromium import all_pages, sign_in
from tests.support import chromium, environment
from tests.support.browser import BrowserPage, SharedBrowser
from tests.support.server import Served

MOST_FIRST_KB, MOST_NEXT_KB = 150.0, 60.0
# A list has fifty rows: more requests than this, and rows ask for themselves.
MOST_REQUESTS = 30
EVENTS = int(os.environ.get("BENCH_EVENTS") or 20_000)
# As a stream of the busiest: what comes within a second is asked for once.
_AT_ONCE = 100
MOST_GROWTH = 1.1
MOST_NOTICE_S = 5.0
_CONVERSATIONS = 40
# Live parts are asked for within two seconds of news.
_SETTLED_MS = 2_500
_SHIFTS = """
window.__shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput)
      window.__shifts.push([entry.value, entry.sources.map((s) =>
        s.node?.id || s.node?.className || s.node?.parentElement?.className || s.node?.nodeName)]);
}).observe({ type: "layout-shift", buffered: true });
"""
_Pages = Callable[..., BrowserPage]


@dataclass(slots=True)
class _Load:
    """What one look at a page cost."""

    kb: float = 0.0
    requests: int = 0


def rows() -> Iterator[Row]:
    """Measure everything; takes about ten minutes."""
    environment.prepare()
    browser = SharedBrowser()
    with tempfile.TemporaryDirectory(prefix="helmdash-browsing-") as folder:
        served = Served(data_dir=Path(folder) / "data")
        served.start()
        try:
            with browser.pages(chromium.find()) as new_page:
                yield from _measure(served, new_page)
        finally:
            browser.stop()
            served.close()
            environment.finish()


def _measure(served: Served, new_page: _Pages) -> Iterator[Row]:
    page = new_page(viewport={"width": 1280, "height": 800})
    sign_in(page, served)
    page.goto(f"{served.base_url}/settings/")
    page.click("text=Load demo data")
    page.wait_for_selector("text=Nothing on this page is yours")
    paths = [path if "project=" in path else _in_demo(path) for path in all_pages(page, served)]
    page.context.close()
    calls = _Calls(served)
    for path in dict.fromkeys(paths):
        yield from _weigh(served, new_page, path, calls)
    calls.settle()
    for path in ("/?project=default", "/calls/?project=default", "/conversations/talk-0/"):
        yield _stay(served, new_page, path, calls)
    yield from _stop(served, new_page)


def _in_demo(path: str) -> str:
    return str(httpx.URL(path).copy_merge_params({"project": "demo"}))


class _Calls:
    """Calls that come in, each of the next of a few conversations."""

    def __init__(self, served: Served) -> None:
        self._client = httpx.Client(base_url=served.base_url, headers=served.headers, timeout=60)
        self._numbers = count()

    def report(self, calls: int) -> None:
        """So many in one request."""
        body = {"calls": [self._call(next(self._numbers)) for _ in range(calls)]}
        self._client.post("/api/v1/calls/batch", json=body).raise_for_status()

    def settle(self) -> None:
        """Have every conversation there, and each list full: what comes later takes a place."""
        self.report(_CONVERSATIONS * 25)

    @staticmethod
    def _call(number: int) -> dict[str, Any]:
        return {
            "model": "openai/gpt-4o",
            "conversation": f"talk-{number % _CONVERSATIONS}",
            "usage": {"prompt_tokens": 20_000 + number % 997 * 80, "completion_tokens": 300},
            "finish_reason": "stop",
        }


# --- each page -----------------------------------------------------------------------------------


def _weigh(served: Served, new_page: _Pages, path: str, calls: _Calls) -> Iterator[Row]:
    page = new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(_SHIFTS)
    sign_in(page, served)
    # The page of signing in has brought the styles already: only who signs in is kept.
    session = page.context.new_cdp_session(page.page)
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    first, following = _look(page, session, served.base_url + path), _Load()
    page.goto(served.base_url + _in_demo("/help/"))
    following = _look(page, session, served.base_url + path)
    calls.report(1)
    page.wait_for_timeout(_SETTLED_MS)
    shifts = page.evaluate("window.__shifts")
    page.context.close()
    name = re.sub(r"\?project=\w+$", "", path)
    yield Row(
        name=f"{name}, first",
        figure=f"{first.kb:.1f} kB",
        against=f"{first.requests} requests",
        ratio=None,
        goal=f"<= {MOST_FIRST_KB:g} kB",
        ok=first.kb <= MOST_FIRST_KB and first.requests <= MOST_REQUESTS,
    )
    yield Row(
        name=f"{name}, next",
        figure=f"{following.kb:.1f} kB",
        against=f"{following.requests} requests",
        ratio=None,
        goal=f"<= {MOST_NEXT_KB:g} kB",
        ok=following.kb <= MOST_NEXT_KB and following.requests <= MOST_REQUESTS,
    )
    moved = sum(value for value, _ in shifts)
    if moved:
        what = ", ".join(sorted({str(each) for _, sources in shifts for each in sources}))
        yield Row(
            name=f"{name}, moves",
            figure=f"{moved:.4f}",
            against=what[:70],
            ratio=None,
            goal="0",
            ok=False,
        )


def _look(page: BrowserPage, session: Any, url: str) -> _Load:
    """Load a page, and add up what came for it; the stream, which has no end, left out."""
    load, streams = _Load(), set()

    def begin(event: dict[str, Any]) -> None:
        if "/live/" in event["request"]["url"]:
            streams.add(event["requestId"])

    def end(event: dict[str, Any]) -> None:
        # What comes from the browser's own cache has no length.
        if event["requestId"] not in streams and event["encodedDataLength"]:
            load.kb += event["encodedDataLength"] / 1000
            load.requests += 1

    session.on("Network.requestWillBeSent", begin)
    session.on("Network.loadingFinished", end)
    page.goto(url, wait_until="load")
    page.wait_for_timeout(500)
    session.remove_listener("Network.requestWillBeSent", begin)
    session.remove_listener("Network.loadingFinished", end)
    return load


# --- a tab for a day -----------------------------------------------------------------------------


def _stay(served: Served, new_page: _Pages, path: str, calls: _Calls) -> Row:
    page = new_page(viewport={"width": 1280, "height": 800})
    sign_in(page, served)
    page.goto(served.base_url + path)
    session = page.context.new_cdp_session(page.page)
    page.wait_for_timeout(_SETTLED_MS)
    began = time.monotonic()
    early = _heap(session)
    _see(page, calls, EVENTS)
    late = _heap(session)
    page.context.close()
    ratio = late[0] / early[0]
    return Row(
        name=f"{path} after {EVENTS:,} calls",
        figure=f"heap {late[0]:.2f} MB, {late[1]:,} nodes, {late[2]} listeners",
        against=f"{early[0]:.2f} MB, {early[1]:,}, {early[2]} as it was loaded; "
        f"{time.monotonic() - began:.0f} s",
        ratio=ratio,
        goal=f"<= {MOST_GROWTH:g}x",
        ok=ratio <= MOST_GROWTH,
    )


def _see(page: BrowserPage, calls: _Calls, events: int) -> None:
    """Have so many come in; the page asks for them by itself, so that nothing but its own scripts
    runs in it."""
    for _ in range(events // _AT_ONCE):
        with page.page.expect_response(lambda each: "hx-request" in each.request.headers):
            calls.report(_AT_ONCE)


def _heap(session: Any) -> tuple[float, int, int]:
    """Megabytes of scripts' values, nodes and listeners, with nothing left to collect."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    dom = session.send("Memory.getDOMCounters")
    return used, dom["nodes"], dom["jsEventListeners"]


# --- a server that goes and comes ----------------------------------------------------------------


def _stop(served: Served, new_page: _Pages) -> Iterator[Row]:
    page = new_page(viewport={"width": 1280, "height": 800})
    sign_in(page, served)
    page.goto(f"{served.base_url}/?project=default")
    page.wait_for_timeout(_SETTLED_MS)

    def freeze() -> None:
        os.kill(served.process.pid, signal.SIGSTOP)

    def thaw() -> None:
        os.kill(served.process.pid, signal.SIGCONT)

    ways: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
        ("stopped in order", served.stop, served.start),
        ("killed", served.kill, served.start),
        ("frozen", freeze, thaw),
    )
    for name, end, begin in ways:
        end()
        away = _until(page, "body.stale")
        page.wait_for_timeout(1_000)
        begin()
        back = _until(page, "body:not(.stale)")
        yield _noticed(f"server {name}: noticed after", away)
        yield _noticed("and that it is back, after it answers", back)
    page.context.close()


def _until(page: BrowserPage, selector: str) -> float:
    began = time.monotonic()
    page.wait_for_selector(selector, state="attached", timeout=60_000)
    return time.monotonic() - began


def _noticed(name: str, seconds: float) -> Row:
    return Row(
        name=name,
        figure=f"{seconds:.1f} s",
        against="",
        ratio=None,
        goal=f"<= {MOST_NOTICE_S:g} s",
        ok=seconds <= MOST_NOTICE_S,
    )
