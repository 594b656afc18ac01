"""A page in Chromium that remembers all that went wrong on it.

Playwright and Chromium take more than a second of CPU to start: browser tests that follow each
other share them, each with contexts of its own. They end before a test of another kind: while
Playwright runs, its event loop counts as running in this thread, and a test that starts a loop of
its own would fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright, Response, sync_playwright

from tests.support.accessibility import faults_of

_ARGUMENTS = [
    # Quiet: no updates, no sync, no look-ups of hosts that are not this machine.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    "--no-first-run",
    # Containers have little /dev/shm.
    "--disable-dev-shm-usage",
    "--disable-gpu",
]
# Violations of a report-only policy do not reach the console as errors.
_REPORT_VIOLATIONS = """
document.addEventListener('securitypolicyviolation', event => console.error(
    `CSP ${event.effectiveDirective} blocked ${event.blockedURI} in ${event.sourceFile}`));
"""


class BrowserPage:
    """Playwright's Page (every member of it is here) with `problems` and `accessibility`.

    The hosts of the addresses passed to `goto` are ours; a request to any other is a problem.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self._own: set[str] = set()
        self._requested: list[str] = []
        self._errors: list[str] = []
        page.on("console", lambda line: self._note_console(line.type, line.text))
        page.on("pageerror", lambda error: self._errors.append(f"script error: {error}"))
        page.context.on("request", lambda request: self._requested.append(request.url))
        page.add_init_script(_REPORT_VIOLATIONS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def goto(self, url: str, **options: Any) -> Response | None:
        """Playwright's goto; takes the host of `url` for ours."""
        self._own.add(urlsplit(url).netloc)
        return self.page.goto(url, **options)

    def follow(self, selector: str) -> None:
        """Click on what leads to another page, and wait until that page has loaded.

        Playwright's click returns while the old page may still be there: what is asked at once
        would be answered by either of them, or by a page without a body.
        """
        with self.page.expect_navigation():
            self.page.click(selector)

    def problems(self) -> list[str]:
        """Console errors, script errors, CSP violations and requests to other hosts, so far."""
        foreign = [
            f"request to another host: {url}" for url in self._requested if self._is_foreign(url)
        ]
        return self._errors + foreign

    def forget_problems(self) -> None:
        """Begin anew, after a step that is expected to go wrong."""
        self._errors.clear()
        self._requested.clear()

    def accessibility(self, *, colours_alone: bool = False) -> list[str]:
        """What axe finds wrong with the page as it is now: one line for each rule and place.

        colours_alone: by the rules about colours; for the second scheme of a page that has passed
        the others, since its style sheets name a scheme in no place but colours.
        """
        return faults_of(self.page, colours_alone=colours_alone)

    def _note_console(self, kind: str, text: str) -> None:
        if kind != "error":
            return
        # A request that the page itself gave up, for a newer one or as it was left: htmx says that
        # it is over, and then why.
        last = self._errors[-1] if self._errors else ""
        if "htmx:sendAbort" in text and "htmx:afterRequest" in last:
            self._errors.pop()
            return
        self._errors.append(f"console error: {text}")

    def _is_foreign(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc not in self._own


class SharedBrowser:
    """One Chromium, started when the first page is wanted."""

    def __init__(self) -> None:
        self._running: tuple[Playwright, Browser] | None = None

    @contextmanager
    def pages(self, executable: str) -> Iterator[Callable[..., BrowserPage]]:
        """Gives a function that opens a page in a context of its own; closes them afterwards.

        Its keywords are Playwright's for a context: viewport, color_scheme, base_url, ...
        """
        opened: list[BrowserPage] = []

        def new_page(**options: Any) -> BrowserPage:
            page = BrowserPage(self._start(executable).new_context(**options).new_page())
            opened.append(page)
            if base := options.get("base_url"):
                page._own.add(urlsplit(base).netloc)
            return page

        try:
            yield new_page
        finally:
            for page in opened:
                page.context.close()

    def stop(self) -> None:
        """End Chromium and Playwright, if they run."""
        if self._running is not None:
            playwright, chromium = self._running
            self._running = None
            chromium.close()
            playwright.stop()
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]

    def _start(self, executable: str) -> Browser:
        if self._running is not None and not self._running[1].is_connected():
            self.stop()
        if self._running is None:
            playwright = sync_playwright().start()
            # Its loop counts as running; a test may still use the ORM.
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
            chromium = playwright.chromium.launch(executable_path=executable, args=_ARGUMENTS)
            self._running = playwright, chromium
        return self._running[1]
