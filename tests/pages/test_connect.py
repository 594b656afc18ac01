"""The page that connects an agent: its block is filled in, and its state tells the truth."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import MemberRole
from helmdash.core.access.wrong_addresses import KnockReason
from helmdash.operations.access import wrong_addresses
from helmdash.operations.access.wrong_addresses import Knocked
from helmdash.pages.parts.agents.table import AGENTS, Agent
from helmdash.pages.parts.agents.wiring import Wiring
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import ApiKey
from tests.factories import make_capture, record, sign_in
from tests.pages.hygiene import faults

BASE = "http://127.0.0.1:8000"
STATE = {"HX-Request": "true"}
KNOWN = Wiring(
    base=BASE,
    key="hd_made",
    model="openai/gpt-4o",
    window=128_000,
    compacts_at=115_200,
    output_tokens=4000,
)
UNKNOWN = Wiring(base=BASE, key=None, model="rack/own")


def state(client: Client, agent: str, since: Any = None) -> str:
    since = since or timezone.now() - timedelta(minutes=5)
    address = f"/connect/?client={agent}&since={int(since.timestamp())}"
    html = client.get(address, headers=STATE).content.decode()
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", html))).strip()


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
def test_the_first_block_says_all_that_the_client_needs(agent: Agent) -> None:
    known = "".join(snippet.text for snippet in agent.write(KNOWN))
    unknown = "".join(snippet.text for snippet in agent.write(UNKNOWN))

    assert BASE in known
    assert "hd_made" in known
    assert "openai/gpt-4o" in known
    assert "rack/own" in unknown
    assert re.search(r"\"\$HELMDASH_API_KEY\"|hd_YOUR_KEY|env:HELMDASH_API_KEY", unknown)
    # A guess at a window would be taken for one.
    assert not re.search(r"None|: null|128000", unknown)
    if agent.id not in ("gemini-cli", "qwen-code"):
        assert re.search(r"128000|115200", known)


def test_pi_looks_its_key_up_and_names_its_sessions() -> None:
    """As 1.6.0 reads its list of models: a name without a dollar sign is the key itself."""
    write = next(agent.write for agent in AGENTS if agent.id == "pi")

    settings, shell = (snippet.text for snippet in write(UNKNOWN))

    provider = json.loads(settings)["providers"]["helmdash"]
    assert provider["apiKey"] == "$HELMDASH_API_KEY"
    assert provider["models"][0]["compat"] == {"sendSessionAffinityHeaders": True}
    assert "export HELMDASH_API_KEY=" in shell


def test_clines_command_is_told_the_same_as_its_editor() -> None:
    write = next(agent.write for agent in AGENTS if agent.id == "cline")

    _, shell = (snippet.text for snippet in write(KNOWN))

    words = shlex.split(shell.splitlines()[0])
    told = dict(zip(words[2::2], words[3::2], strict=True))
    assert words[:2] == ["cline", "auth"]
    assert told == {
        "-p": "openai",
        "-b": f"{BASE}/v1",
        "-k": "hd_made",
        "-m": "openai/gpt-4o",
    }


def test_claude_code_is_told_what_it_counts_on() -> None:
    write = next(agent.write for agent in AGENTS if agent.id == "claude-code")

    def told(model: str, window: int | None, compacts_at: int | None) -> dict[str, str]:
        wiring = Wiring(base=BASE, key="k", model=model, window=window, compacts_at=compacts_at)
        settings = json.loads(write(wiring)[1].text)
        assert settings["hooks"]["StopFailure"][0]["hooks"][0]["type"] == "http"
        return dict(settings["env"])

    own = told("anthropic/claude-sonnet-4-5", 200_000, 180_000)
    long = told("anthropic/claude-opus-4-8", 1_000_000, 900_000)
    other = told("openai/gpt-4o", 128_000, 115_200)
    small = told("ollama/tiny", 8192, 7372)

    assert own["ANTHROPIC_MODEL"] == "claude-sonnet-4-5"
    assert own["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "180000"
    assert long["ANTHROPIC_MODEL"] == "claude-opus-4-8[1m]"
    assert other["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "128000"
    assert other["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "115200"
    assert small["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "8192"
    # It takes none below 100,000.
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW" not in small


def test_codex_is_told_the_same_by_both_blocks() -> None:
    write = next(agent.write for agent in AGENTS if agent.id == "codex")
    shell, file, telemetry = write(KNOWN)

    told = tomllib.loads(file.text)
    words = shlex.split(shell.text.replace("\\\n", " "))
    options = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
    overrides: dict[str, Any] = {}
    for option in options:
        overrides |= tomllib.loads(option)

    assert told["model_context_window"] == 128_000
    assert told["model_auto_compact_token_limit"] == 115_200
    assert told["model"] == "openai/gpt-4o"
    assert overrides == told
    otlp = tomllib.loads(telemetry.text)["otel"]["exporter"]["otlp-http"]
    assert otlp["endpoint"] == f"{BASE}/v1/logs"
    assert otlp["headers"]["Authorization"] == "Bearer hd_made"


def test_a_made_key_is_shown_once_and_reports_only(owner: Client, project: ProjectInfo) -> None:
    answer = owner.post("/connect/key/", {"client": "codex", "project": project.slug})
    html = answer.content.decode()

    key = ApiKey.objects.get(name__startswith="Codex ")
    found = set(re.findall(r"hd_[A-Za-z0-9_-]{20,}", html))
    assert key.scopes == ["record"]
    assert len(found) == 1
    assert answer["Cache-Control"] == "no-store"
    assert faults(html) == []
    assert found.isdisjoint(re.findall(r"hd_\S+", owner.get("/connect/").content.decode()))


def test_it_waits_for_exactly_that_client(owner: Client, project: ProjectInfo) -> None:
    now = timezone.now()
    assert state(owner, "codex").startswith("Waiting for the first call of Codex.")

    record(make_capture(client_name="curl", started_at=now), project=project)
    assert "A call came of curl" in state(owner, "codex")

    record(make_capture(client_name="codex", usage=None, started_at=now), project=project)
    assert "told no prompt tokens" in state(owner, "codex")

    record(make_capture(client_name="codex", started_at=now), project=project)
    assert "Connected Codex called openai/gpt-4o with 20,000 prompt tokens" in state(owner, "codex")
    assert state(owner, "claude-code").startswith("Waiting")
    later = state(owner, "codex", since=now + timedelta(seconds=1))
    assert later.startswith("Waiting for the first call of Codex. It was here before")


def test_a_call_that_failed_says_why(owner: Client, project: ProjectInfo) -> None:
    failed = make_capture(
        client_name="codex",
        started_at=timezone.now(),
        usage=None,
        finish_reason=None,
        status="error",
        http_status=401,
        error_message="no such key",
    )
    record(failed, project=project)

    assert state(owner, "codex").startswith("Refused A call of Codex came, and failed:")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (KnockReason.ADDRESS, "asked for POST /v2/responses, which is not there"),
        (KnockReason.KEY, "came to POST /v2/responses, and its key was refused"),
    ],
)
def test_who_was_turned_away_is_told_to_owners(
    owner: Client, project: ProjectInfo, reason: KnockReason, words: str
) -> None:
    now = timezone.now()
    knock = Knocked(
        method="POST",
        path="/v2/responses",
        client="codex 0.169.0",
        advice="What to do instead.",
        count=1,
        first_at=now,
        latest_at=now,
        reason=reason.value,
    )
    wrong_addresses.store(knocks=[knock])
    viewer = sign_in("viewer", project=project, role=MemberRole.VIEWER)

    told = state(owner, "codex")
    assert told.startswith("Refused codex 0.169.0")
    assert words in told
    assert "What to do instead." in told
    assert state(viewer, "codex").startswith("Waiting")
    assert state(owner, "gemini-cli").startswith("Waiting")


@pytest.mark.parametrize(
    ("library", "agents"),
    [("javascript", {"claude-code", "gemini-cli"}), ("rust", {"codex"}), ("python", set())],
)
def test_a_refused_export_is_told_to_whose_telemetry_it_may_be(
    owner: Client, project: ProjectInfo, library: str, agents: set[str]
) -> None:
    now = timezone.now()
    knock = Knocked(
        method="POST",
        path="/v1/logs",
        client=f"otel-otlp-exporter-{library} 0.31.0",
        advice="The key is unknown.",
        count=1,
        first_at=now,
        latest_at=now,
        reason=KnockReason.KEY.value,
    )
    wrong_addresses.store(knocks=[knock])

    told = {agent.id for agent in AGENTS if "its key was refused" in state(owner, agent.id)}
    assert told == agents


@pytest.mark.parametrize("since", ["x", "-1", "9" * 30, "0"])
def test_a_moment_that_is_none_is_now_or_a_day_ago(owner: Client, since: str) -> None:
    answer = owner.get(f"/connect/?client=nobody&since={since}")

    assert answer.status_code == 200
    assert "Waiting" in answer.content.decode()
