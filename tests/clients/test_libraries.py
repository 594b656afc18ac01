"""Libraries as their users run them: each call whole, and in the right conversation."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.world import PROMPT, World, model_of
from tests.support.upstreams.plays import WHOLE

PROGRAMS = Path(__file__).parent / "programs"
_SECONDS = 60
# A program, the API it speaks, and the upstream behind the gateway.
_CASES = [
    ("openai_sdk.py", "responses", "responses"),
    ("openai_sdk.py", "responses", "openai"),
    ("agents_sdk.py", "responses", "responses"),
    ("agents_sdk.py", "responses", "openai"),
    ("agents_sdk.py", "chat", "responses"),
    ("agents_sdk.py", "chat", "openai"),
    ("langchain_sdk.py", "responses", "responses"),
    ("langchain_sdk.py", "responses", "openai"),
    ("langchain_sdk.py", "chat", "responses"),
    ("langchain_sdk.py", "chat", "openai"),
    ("ai_sdk.mjs", "responses", "responses"),
    ("ai_sdk.mjs", "responses", "openai"),
    ("ai_sdk.mjs", "chat", "responses"),
    ("ai_sdk.mjs", "chat", "openai"),
]
# How many calls each program makes of what it is to do.
_PLAIN = {"create": 1, "stream": 1, "parse": 1, "tools": 2}
_CALLS = {
    "openai_sdk.py": _PLAIN,
    "langchain_sdk.py": _PLAIN,
    "ai_sdk.mjs": _PLAIN,
    "agents_sdk.py": {"create": 1, "stream": 1, "tools": 2, "lead": 2, "part": 1},
}


@dataclass(frozen=True, slots=True)
class Case:
    """What one of the programs was asked to do once, and what it told of it."""

    model: str
    told: dict[str, Any]


@pytest.fixture(scope="module")
def told_by(world: World, programs: Path) -> Callable[[str], dict[tuple[str, str], Case]]:
    """A function (program) that gives its cases by API and upstream.

    A program does all of them in one start: to load LangChain or openai-agents takes seconds, a
    case tenths of one.
    """

    @cache
    def tell(name: str) -> dict[tuple[str, str], Case]:
        ways = [way for program, *way in _CASES if program == name]
        asked = []
        for api, provider in ways:
            mark = uuid4().hex[:10]
            asked.append({"api": api, "model": model_of(provider, mark=mark), "mark": mark})
        given = {"GATEWAY": world.url, "HELMDASH_API_KEY": world.key, "CASES": json.dumps(asked)}
        told = run(programs, name, given)
        return {
            (api, provider): Case(case["model"], each)
            for (api, provider), case, each in zip(ways, asked, told, strict=True)
        }

    return tell


def run(programs: Path, name: str, variables: dict[str, str]) -> list[dict[str, Any]]:
    """What one of the programs tells of its cases; it reads itself from its standard input, so that
    it finds the packages of the folder it runs in."""
    command = ["python/bin/python", "-"]
    if name.endswith(".mjs"):
        command = ["node/bin/node", "--input-type=module", "-"]
    done = subprocess.run(
        command,
        input=(PROGRAMS / name).read_text(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        env={"PATH": os.environ["PATH"], "HOME": str(programs), "LANG": "C.UTF-8", **variables},
        cwd=programs,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize(("name", "api", "provider"), _CASES)
def test_a_library_works_as_it_is(
    world: World, told_by: Callable[[str], dict[tuple[str, str], Case]], name: str, api: str,
    provider: str,
) -> None:  # fmt: skip
    case = told_by(name)[api, provider]

    told = case.told
    assert {told[each] for each in told.keys() - {"parse", "tool"}} == {WHOLE}
    assert told.get("parse", {"city": "city ✓"}) == {"city": "city ✓"}
    assert told["tool"] == "Zürich"
    expected = _CALLS[name]
    calls = world.calls_to(case.model, count=sum(expected.values()))
    assert {call["lane"] for call in calls} == {"main"}
    assert {call["usage"]["prompt_tokens"] for call in calls} == {PROMPT}
    sizes: dict[str, int] = {}
    for call in calls:
        sizes[call["conversation"]] = sizes.get(call["conversation"], 0) + 1
    assert sorted(sizes.values()) == sorted(expected.values())
