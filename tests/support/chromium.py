"""A Chromium for the browser tests: found on the machine, or Playwright's own.

tests/support/provide.py gets one where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOW = "Run `make test`, or install Chromium or Google Chrome so that it is on the PATH."
# First the one without windows: the same engine for a third of the CPU (six pages: 1.8 and 5.9 s).
HEADLESS = "chromium-headless-shell"
_NAMES = f"{HEADLESS} chromium chromium-browser google-chrome google-chrome-stable chrome".split()
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
_ASK_PLAYWRIGHT = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""


class NoChromium(Exception):
    """There is no browser that can be driven; the message says why and how to get one."""


def find() -> str:
    """Path of a Chromium that is here and can be driven. Raises NoChromium."""
    own = _playwrights_own()
    on_path = (shutil.which(name) for name in _NAMES)
    found = [path for path in [*on_path, str(_MAC), own] if path and Path(path).exists()]
    if not found:
        raise NoChromium(f"No Chromium here. {HOW}")
    return found[0]


def _playwrights_own() -> str:
    """Where Playwright would have its own, there or not. Raises NoChromium when it cannot start."""
    # In a process of its own: while Playwright runs, so does its event loop.
    command = [sys.executable, "-c", _ASK_PLAYWRIGHT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        why = next(iter(done.stderr.strip().splitlines()), "")
        raise NoChromium(f"Playwright does not start here: {why}. Run `make test` as root once.")
    return done.stdout.strip()
