"""A newcomer opens Connect, makes a key, pastes one block, and the light comes on."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.clients.shell import headless, run
from tests.gateway.world import World, model_of
from tests.support.browser import BrowserPage

pytestmark = pytest.mark.browser

# Of the whole walk, on a machine that does other work besides.
_MOST_SECONDS = 60
_POLL_MS = 15_000


def sign_in(page: BrowserPage, world: World) -> None:
    page.goto(f"{world.url}/login/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", world.served.admin_password)
    page.follow("main button")


@pytest.mark.parametrize(("name", "provider"), [("claude-code", "anthropic"), ("codex", "openai")])
def test_the_first_light_comes_within_a_minute(
    world: World, browser_page: BrowserPage, mark: str, programs: Path, name: str, provider: str
) -> None:
    page = browser_page
    sign_in(page, world)
    began = time.monotonic()

    page.goto(f"{world.url}/connect/?client={name}")
    page.fill("#model", model_of(provider, mark=mark))
    page.follow("text=Fill in")
    page.follow("text=Make a key and fill it in")
    assert "Waiting" in page.inner_text("#connection")
    block = page.inner_text(f"#{name}-shell")
    options = ["--skip-git-repo-check"] if name == "codex" else []
    said = run(programs, programs / "homes" / mark, headless(name, block, *options, "'Hello?'"))
    page.wait_for_selector("#connection >> text=Connected", timeout=_POLL_MS)
    took = time.monotonic() - began

    print(said, took)
    assert took < _MOST_SECONDS
    page.follow("#connection >> text=The call")
    assert "/calls/" in page.url
    assert page.problems() == []


@pytest.mark.parametrize(
    ("wrong", "put", "expected"),
    [(r"hd_\w+", "hd_wrong", "its key was refused"), ("/v1", "/v2", "/v1/responses")],
)
def test_the_page_says_what_is_missing(
    world: World, browser_page: BrowserPage, mark: str, programs: Path, wrong: str, put: str,
    expected: str,
) -> None:  # fmt: skip
    page = browser_page
    sign_in(page, world)
    page.goto(f"{world.url}/connect/?client=codex&model={model_of('openai', mark=mark)}")
    page.follow("text=Make a key and fill it in")
    block = re.sub(wrong, put, page.inner_text("#codex-shell"))

    script = headless("codex", block, "--skip-git-repo-check", "'Hello?'")
    run(programs, programs / "homes" / mark, script)

    # Both at once: what another test was refused may be there before.
    told = f"#connection:has-text('Refused'):has-text('{expected}')"
    page.wait_for_selector(told, timeout=_POLL_MS)
