"""`make shots`: every page in every state, at every width, in both schemes, into var/shots.

Nothing is compared: a person looks at them, by the index page that is made beside them.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from html import escape
from itertools import product
from pathlib import Path

import httpx

from tests.pages.test_in_chromium import PAGES, all_pages, record, sign_in
from tests.support import chromium, environment
from tests.support.browser import BrowserPage, SharedBrowser
from tests.support.server import Served

TARGET = Path("var/shots")
# A second monitor, a laptop, a phone.
SIZES = ((1440, 900), (1280, 800), (390, 844))
SCHEMES = ("light", "dark")
# Faults that a reader can run into, each by its address.
FAULTS = ("/calls/?level=red&range=soon", "/calls/no-such-call/", "/?project=no-such-project")
# The page shows by then that the server is away.
_NOTICED_MS = 5_500
_INDEX = """<!doctype html><meta charset="utf-8"><title>Shots</title>
<style>body {{ font: 14px sans-serif; columns: 22rem; }} img {{ width: 100%; border: 1px solid; }}
figure {{ margin: 0 0 1rem; break-inside: avoid; }}</style>
{figures}
"""


def main() -> None:
    """Take them all; HelmDash runs on data of its own for it."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for old in TARGET.glob("*.png"):
        old.unlink()
    environment.prepare()
    browser = SharedBrowser()
    with tempfile.TemporaryDirectory(prefix="helmdash-shots-") as folder:
        served = Served(data_dir=Path(folder) / "data")
        served.start()
        try:
            with browser.pages(chromium.find()) as new_page:
                for state, paths in _states(served, new_page):
                    print(f"{state}: {len(paths)} pages", file=sys.stderr)
                    _shoot(served, new_page, state, paths)
        finally:
            browser.stop()
            served.close()
            environment.finish()
    figures = "".join(
        f'<figure><a href="{escape(shot.name)}"><img loading="lazy" src="{escape(shot.name)}" '
        f'alt=""></a><figcaption>{escape(shot.stem)}</figcaption></figure>\n'
        for shot in sorted(TARGET.glob("*.png"))
    )
    (TARGET / "index.html").write_text(_INDEX.format(figures=figures), encoding="utf-8")
    print(TARGET / "index.html")


def _states(
    served: Served, new_page: Callable[..., BrowserPage]
) -> Iterator[tuple[str, list[str]]]:
    """Each state with the pages to look at in it; the server is brought into it before."""
    fixed = [path for path in PAGES if not re.match(r"/(conversations|calls)/.", path)]
    yield "empty", fixed
    record(served, id="first", conversation="hello")
    yield "little", [*fixed, "/conversations/hello/", "/calls/first/"]
    page = new_page()
    sign_in(page, served)
    page.goto(f"{served.base_url}/settings/")
    page.click("text=Load demo data")
    page.wait_for_selector("text=Nothing on this page is yours")
    yield "full", [_in_demo(path) for path in all_pages(page, served)]
    yield "error", list(FAULTS)
    yield "offline", [_in_demo("/"), _in_demo("/calls/")]


def _in_demo(path: str) -> str:
    return str(httpx.URL(path).copy_merge_params({"project": "demo"}))


def _shoot(
    served: Served, new_page: Callable[..., BrowserPage], state: str, paths: list[str]
) -> None:
    for (width, height), scheme in product(SIZES, SCHEMES):
        page = new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        sign_in(page, served)
        for path in paths:
            page.goto(served.base_url + path)
            if state == "offline":
                os.kill(served.process.pid, signal.SIGSTOP)
                page.wait_for_timeout(_NOTICED_MS)
            name = re.sub(r"\W+", "-", path).strip("-")[:60] or "overview"
            target = TARGET / f"{name}.{state}.{width}.{scheme}.png"
            page.screenshot(path=target, full_page=state != "offline")
            os.kill(served.process.pid, signal.SIGCONT)
        page.context.close()


if __name__ == "__main__":
    main()
