"""Codex asks for the list of models, and counts on the windows that it finds there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients.shell import run
from tests.gateway.world import WINDOW_TOKENS, budgets, open_http
from tests.support.server import Served
from tests.support.upstreams import Fleet

# Codex asks a provider for its models only where it gets the key by a command.
_SCRIPT = """
mkdir -p ~/.codex
cat > ~/.codex/config.toml <<'END'
model = "{model}"
model_provider = "helmdash"
[model_providers.helmdash]
name = "HelmDash"
base_url = "{url}/v1"
wire_api = "responses"
[model_providers.helmdash.auth]
command = "printf"
args = ["{key}"]
END
# A turn may begin, and end, before the list is there; the one after a turn that kept it has it.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  codex exec --skip-git-repo-check 'Say hello in one word.' >> first.log 2>&1
  if [ -e ~/.codex/models_cache.json ]; then break; fi
done
codex exec --skip-git-repo-check 'Say hello in one word.'
"""


def test_codex_counts_on_the_window_that_its_list_tells(
    serve: Callable[..., Served], fleet: Fleet, programs: Path, mark: str
) -> None:
    served = serve(**fleet.environment(), HELMDASH_CODEX_MODELS="1")
    with open_http(f"{served.base_url}/api/v1", served.api_key) as api:
        for row in budgets():
            api.post("/budgets", json=row)
    with open_http(served.base_url, served.api_key) as http:
        listed = http.get("/v1/models").json()["models"]
    model = next(each["slug"] for each in listed if "gpt-plain" in each["slug"])
    home = programs / "homes" / mark

    said = run(programs, home, _SCRIPT.format(model=model, url=served.base_url, key=served.api_key))

    windows = set()
    for path in home.glob(".codex/sessions/**/*.jsonl"):
        for line in path.read_text().splitlines():
            payload: dict[str, Any] = json.loads(line).get("payload") or {}
            windows.add(payload.get("model_context_window"))
            windows.add((payload.get("info") or {}).get("model_context_window"))
    assert WINDOW_TOKENS * 95 // 100 in windows, said
    assert "metadata" not in said
