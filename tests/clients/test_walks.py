"""A stranger pastes the block of the page Connect, and the first light comes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helmdash.pages.parts.agents.table import find_agent
from helmdash.pages.parts.agents.wiring import Wiring
from tests.gateway.world import World, model_of

# Headless: what each command takes instead of a terminal.
_ASK = "Say hello in one word."
_HEADLESS = {
    "claude-code": ("\nclaude\n", f"\nclaude -p '{_ASK}'\n"),
    "codex": (" codex ", f" codex exec --skip-git-repo-check '{_ASK}' "),
    "gemini-cli": ("\ngemini\n", f"\ngemini -p '{_ASK}'\n"),
    "opencode": ("\nopencode\n", f"\nopencode run '{_ASK}'\n"),
}
_SECONDS = 120


def run(programs: Path, home: Path, script: str) -> str:
    """What a shell says to a block, in an empty home."""
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
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        env=variables,
        cwd=home,
        stdin=subprocess.DEVNULL,
    )
    return f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("claude-code", "anthropic"),
        ("claude-code", "openai"),
        ("claude-code", "responses"),
        ("codex", "openai"),
        ("codex", "responses"),
        ("codex", "anthropic"),
        ("gemini-cli", "gemini"),
        ("gemini-cli", "openai"),
        ("gemini-cli", "responses"),
        ("opencode", "openai"),
        ("opencode", "responses"),
    ],
)
def test_a_pasted_block_brings_the_first_call(
    world: World, mark: str, programs: Path, name: str, provider: str
) -> None:
    agent = find_agent(name)
    assert agent is not None
    model = model_of(provider, mark=mark)
    wiring = Wiring(base=world.url, key=world.key, model=model, window=128_000, compacts_at=115_200)
    block, headless = agent.write(wiring)[0].text, _HEADLESS[name]
    assert headless[0] in block

    # Not below /tmp: Gemini CLI trusts no settings in a folder that everybody may write to.
    home = programs / "homes" / mark
    home.mkdir(parents=True)
    said = run(programs, home, block.replace(*headless, 1))

    asked = model.rpartition("/")[2] if (name, provider) == ("claude-code", "anthropic") else model
    print(said)  # shown where the next line fails
    calls: list[dict[str, Any]] = world.calls_to(asked)
    main = [call for call in calls if call["lane"] == "main"]
    assert main, said
    assert main[0]["client"]["name"] == name, said
    assert main[0]["conversation"], said
    assert main[0]["usage"]["prompt_tokens"], said
    assert main[0]["cause"] is None, said
