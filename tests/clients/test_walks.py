"""A stranger pastes the block of the page Connect, and the first light comes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.shell import pasted, run
from tests.gateway.world import World, model_of


# opencode, a start of which takes 7 s of CPU, is told the same way in test_sessions.py, where the
# same is asked of its calls.
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
    ],
)
def test_a_pasted_block_brings_the_first_call(
    world: World, mark: str, programs: Path, name: str, provider: str
) -> None:
    model = model_of(provider, mark=mark)
    options = ["--skip-git-repo-check"] if name == "codex" else []

    # Not below /tmp: Gemini CLI trusts no settings in a folder that everybody may write to.
    script = pasted(world, name, model, *options, "'Say hello in one word.'")
    said = run(programs, programs / "homes" / mark, script)

    asked = model.rpartition("/")[2] if (name, provider) == ("claude-code", "anthropic") else model
    print(said)  # shown where the next line fails
    calls: list[dict[str, Any]] = world.calls_to(asked)
    main = [call for call in calls if call["lane"] == "main"]
    assert main, said
    assert main[0]["client"]["name"] == name, said
    assert main[0]["conversation"], said
    assert main[0]["usage"]["prompt_tokens"], said
    assert main[0]["cause"] is None, said
