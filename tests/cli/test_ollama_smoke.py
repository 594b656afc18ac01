"""`manage.py ollama_smoke` against server processes that behave well, badly, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.support import ROOT
from tests.support.model import LocalModel
from tests.support.processes import free_port
from tests.support.upstreams.ollama_shim import MODEL, Ollama, run_shim


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the command."""

    code: int
    out: str

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture(scope="module")
def running() -> Iterator[Ollama]:
    with run_shim() as ollama:
        yield ollama


@pytest.fixture
def ollama(running: Ollama) -> Ollama:
    running.reset()
    return running


@pytest.fixture
def nowhere() -> str:
    """The address of a server that is not there."""
    return f"http://127.0.0.1:{free_port()}"


def smoke(*arguments: str) -> Ran:
    out = StringIO()
    try:
        call_command("ollama_smoke", *arguments, stdout=out, no_color=True)
    except SystemExit as stop:
        return Ran(int(str(stop.code)), out.getvalue())
    return Ran(0, out.getvalue())


def the_only(told: dict[str, Any]) -> dict[str, Any]:
    (test,) = told["tests"]
    assert isinstance(test, dict)
    return test


def test_all_pass_on_a_server_whose_cuts_show(ollama: Ollama) -> None:
    ran = smoke("--url", ollama.url, "--json")

    told = ran.told
    assert (ran.code, told["ok"]) == (0, True)
    assert (told["url"], told["model"]) == (ollama.url, MODEL)
    assert [test["name"] for test in told["tests"]] == ["ping", "truncate", "guard"]
    for test in told["tests"]:
        assert set(test) == {"name", "passed", "message", "details", "duration_ms"}
        assert isinstance(test["duration_ms"], int)
    ping = told["tests"][0]["details"]
    assert ping["models"] == [
        {
            "name": MODEL,
            "window_tokens": 8192,
            "trained_tokens": 8192,
            "configured_tokens": None,
        }
    ]


def test_people_get_a_line_for_each_test(ollama: Ollama) -> None:
    ran = smoke("--url", ollama.url)

    lines = ran.out.splitlines()
    assert [line[:4] for line in lines if line[:4].strip() in ("ok", "FAIL")] == ["ok  "] * 3
    assert f"{MODEL}: window of 8,192 tokens" in ran.out
    assert "Truncation caught" in ran.out


@pytest.mark.parametrize(
    ("refuses", "counts", "outcome", "code"),
    [
        (False, "cut", "caught", 0),  # cuts, and the count shows it
        (True, "cut", "refused", 0),  # cuts nothing
        (False, "none", "missed", 1),  # cuts, and counts nothing
        (False, "whole", "missed", 1),  # cuts, and counts what it never read
    ],
)
def test_truncation_is_caught_or_missed(
    ollama: Ollama, refuses: bool, counts: str, outcome: str, code: int
) -> None:
    ollama.ways.refuses, ollama.ways.counts = refuses, counts

    ran = smoke("truncate", "--url", ollama.url, "--json")

    test = the_only(ran.told)
    assert (ran.code, ran.told["ok"], test["passed"]) == (code, code == 0, code == 0)
    assert test["details"]["outcome"] == outcome
    assert test["details"]["num_ctx"] == 2048
    assert test["details"]["least_tokens"] > 2048
    long = ollama.asked("/api/generate")[-1]
    assert long.json["options"]["num_ctx"] == 2048


def test_a_missed_truncation_comes_with_a_hint(ollama: Ollama) -> None:
    ollama.ways.counts = "none"

    ran = smoke("truncate", "--url", ollama.url)

    assert ran.code == 1
    assert "FAIL truncate: Truncation missed" in ran.out
    assert "cannot be told from a whole one" in ran.out


def test_a_model_that_is_not_there_is_no_refusal_of_a_long_prompt(ollama: Ollama) -> None:
    ran = smoke("truncate", "--url", ollama.url, "--model", "other", "--json")

    test = the_only(ran.told)
    assert (ran.code, test["passed"], test["details"]["outcome"]) == (1, False, "unknown")
    assert "not found" in test["message"]
    assert ran.told["model"] == "other"


def test_without_a_server_only_the_guard_passes(nowhere: str) -> None:
    ran = smoke("--url", nowhere, "--json")

    ping, truncate, guard = ran.told["tests"]
    assert (ran.code, ran.told["ok"]) == (1, False)
    assert [test["passed"] for test in (ping, truncate, guard)] == [False, False, True]
    assert "refused" in ping["message"]
    assert truncate["message"].startswith("Skipped: ")


def test_the_guard_lets_no_request_out(ollama: Ollama) -> None:
    before = len(ollama.server.seen())

    ran = smoke("guard", "--url", ollama.url, "--json")

    details = the_only(ran.told)["details"]
    assert ran.code == 0
    assert (details["requests"], details["requests_received"]) == (0, 0)
    assert (details["control_requests"], details["control_requests_received"]) == (1, 1)
    assert details["over_by"] == details["estimated_tokens"] - details["budget_tokens"] > 0
    assert len(ollama.server.seen()) == before


@pytest.mark.parametrize(("only", "code"), [("native", 0), ("openai", 1)])
def test_a_ping_needs_the_native_api(ollama: Ollama, only: str, code: int) -> None:
    ollama.ways.only = only

    ran = smoke("ping", "--url", ollama.url, "--json")

    test = the_only(ran.told)
    assert ran.code == code
    assert test["details"]["native"]["available"] is (only == "native")
    assert test["details"]["openai"]["available"] is (only == "openai")


def test_milliseconds_and_the_other_name_of_a_test_are_understood(ollama: Ollama) -> None:
    ollama.ways.hangs = {"/api/tags", "/v1/models"}

    slow = smoke("ping", "--url", ollama.url, "--timeout", "1100", "--json")
    cut = smoke("truncation", "--url", ollama.url, "--model", "gone:1b", "--json")

    assert "no answer within 1.1 seconds" in the_only(slow.told)["message"]
    assert the_only(cut.told)["name"] == "truncate"
    assert cut.told["model"] == "gone:1b"


def test_a_server_that_says_nothing_fails_in_time(ollama: Ollama) -> None:
    ollama.ways.hangs = {"/api/tags", "/v1/models"}

    ran = smoke("ping", "--url", ollama.url, "--timeout", "0.3", "--json")

    test = the_only(ran.told)
    assert ran.code == 1
    assert "no answer within 0.3 seconds" in test["message"]
    assert test["duration_ms"] < 3000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fly",), "invalid choice"),
        (("--timeout", "soon"), "no number of seconds"),
        (("--timeout", "0"), "no number of seconds"),
        (("--url", "ftp://here"), "must start with http"),
    ],
)
def test_a_command_that_is_wrong_says_so(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        smoke(*arguments)


def test_as_a_process_it_reads_ollama_host_and_ends_with_a_code(
    ollama: Ollama, tmp_path: Path
) -> None:
    host = ollama.url.removeprefix("http://")
    environment = {**os.environ, "OLLAMA_HOST": host, "HELMDASH_DATA_DIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "manage.py"), "ollama_smoke"]

    fine = subprocess.run([*command, "ping"], env=environment, capture_output=True, text=True)
    wrong = subprocess.run([*command, "fly"], env=environment, capture_output=True, text=True)

    assert (fine.returncode, wrong.returncode) == (0, 2)
    assert ollama.url in fine.stdout
    assert "invalid choice" in wrong.stderr


@pytest.mark.model
def test_a_real_model_whose_prompt_is_cut_is_caught(local_model: LocalModel) -> None:
    with run_shim(local_model) as ollama:
        # Of a window as small as this, a hundred tokens of which take the model a second of CPU.
        ollama.ways.trained = 512
        ran = smoke("--url", ollama.url, "--json")

    truncate = ran.told["tests"][1]
    assert (ran.code, ran.told["ok"]) == (0, True)
    assert (truncate["details"]["outcome"], truncate["details"]["num_ctx"]) == ("caught", 512)
    assert truncate["details"]["prompt_eval_count"] == 512 // 2 + 2
