"""A block of the page Connect, run headless in a shell of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from helmdash.pages.parts.agents.table import find_agent
from helmdash.pages.parts.agents.wiring import Wiring
from tests.gateway.world import World

WINDOW, COMPACTS_AT = 128_000, 115_200
_SECONDS = 60
# Headless: what each command takes instead of a terminal.
_HEADLESS = {
    "claude-code": ("\nclaude\n", "\nclaude -p {}\n"),
    "codex": (" codex ", " codex exec {} "),
    "gemini-cli": ("\ngemini\n", "\ngemini -p {}\n"),
    "opencode": ("\nopencode\n", "\nopencode run {}\n"),
}


def pasted(world: World, agent: str, model: str, *words: str, window: int | None = WINDOW) -> str:
    """The agent's first block as a stranger pastes it, with what it is asked; `words`: what
    stands behind its headless command, a shell's words. `window` None: it is told none."""
    found = find_agent(agent)
    assert found is not None
    wiring = Wiring(
        base=world.url,
        key=world.key,
        model=model,
        window=window,
        compacts_at=COMPACTS_AT if window is not None else None,
        output_tokens=4_000,
    )
    return headless(agent, found.write(wiring)[0].text, *words)


def headless(agent: str, block: str, *words: str) -> str:
    """A block whose command asks by `words` instead of in a terminal."""
    command, asks = _HEADLESS[agent]
    assert command in f"{block}\n"
    return f"{block}\n".replace(command, asks.format(" ".join(words)), 1)


def _furnish(home: Path) -> None:
    """Have opencode find what it would fetch at its first start in a home."""
    # The package that plugins import, of whatever version: 20 MB, and there is no plugin.
    folder = home / ".config/opencode"
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    locked = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (folder / "package-lock.json").write_text(json.dumps(locked))


def run(programs: Path, home: Path, script: str) -> str:
    """What a shell says to a script, in a home of its own."""
    home.mkdir(parents=True, exist_ok=True)
    _furnish(home)
    variables = {
        "HOME": str(home),
        "PATH": f"{programs}/node_modules/.bin:{programs}/node/bin:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        # Nothing but what is locked, and no lists from the network.
        "DISABLE_AUTOUPDATER": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=variables,
            cwd=home,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as late:
        return f"It did not end within {_SECONDS} s. {late.stdout!r} {late.stderr!r}"
    return f"{done.stdout}\n{done.stderr}"
