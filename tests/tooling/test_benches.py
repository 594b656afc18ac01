"""The benchmarks that nobody runs in passing: their loads and their verdicts, without measuring."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import large, peer_servers, peers
from bench.databases import Place
from bench.load import request_body
from bench.turns import Turn

_TURN = Turn(
    per_second=1_000,
    cpu_us=400,
    all_us=400,
    p50_ms=1,
    p95_ms=2,
    p99_ms=3,
    first_ms=1,
    lag_seconds=0,
)


@pytest.mark.parametrize("size", [3_000, 30_000])
def test_a_request_of_a_history_is_as_large_as_it_says(size: int) -> None:
    body = request_body("mock-fast", False, size)

    assert 0.8 * size < len(body) <= size
    roles = [message["role"] for message in json.loads(body)["messages"]]
    assert roles[:3] == ["system", "user", "assistant"]
    assert (roles[-1], len(roles) >= 6) == ("user", True)


# figures of HelmDash in place of the usual; the goals that it misses then
MISSES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set()),
    ({"per_second": 300}, {"requests/s"}),
    ({"cpu_us": 1_700}, {"CPU a request"}),
    ({"p99_ms": 10}, {"p99"}),
    ({"p50_ms": 4}, {"added p50"}),
    ({"first_ms": 2}, {"added to the first byte"}),
]


@pytest.mark.parametrize(("own", "missed"), MISSES)
def test_a_goal_is_missed_by_the_figure_it_is_of(own: dict[str, Any], missed: set[str]) -> None:
    others = {
        "directly": replace(_TURN, p50_ms=0.5, first_ms=0.5),
        "aiohttp floor": _TURN,
        "recording floor": _TURN,
        "Portkey": replace(_TURN, per_second=400, p50_ms=3, first_ms=9),
        "LiteLLM": replace(_TURN, per_second=20),
        "HelmDash": replace(_TURN, **own),
    }
    turns = {(name, case): [turn] for name, turn in others.items() for case in peers.CASES}

    rows = list(peers.goals(turns))

    said = {row.name.removeprefix("goal: ").partition(",")[0] for row in rows if not row.ok}
    assert said == missed
    assert len(rows) == 11
    # Without a peer there are the goals against the floors, and no more.
    floors = {key: each for key, each in turns.items() if key[0] not in ("Portkey", "LiteLLM")}
    assert len(list(peers.goals(floors))) == 5


def test_a_list_that_grows_with_the_calls_misses_its_goal(tmp_path: Path) -> None:
    place = Place(database="postgres", url="", data_dir=tmp_path)

    def verdict(name: str, ms: float, before: float) -> bool | None:
        return large.verdict(name, place, ms, before).ok

    assert verdict("list GET /calls", 12, 10.5)
    assert not verdict("list GET /calls", 13, 10)
    assert verdict("list GET /calls", 1.5, 1)  # too short to be told apart
    assert verdict("page overview", 99, 99)
    assert not verdict("page overview", 101, 101)


def test_a_portkey_that_answers_no_streams_is_installed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As `npm install @portkey-ai/gateway` leaves it: with the newest of all that it asks for.
    home = tmp_path / "portkey"
    server = home / "node_modules/@portkey-ai/gateway/build/start-server.js"
    server.parent.mkdir(parents=True)
    server.touch()
    (home / "package.json").write_text('{"dependencies": {"@portkey-ai/gateway": "^1.15.2"}}')
    monkeypatch.setenv("BENCH_PEERS", str(tmp_path))
    monkeypatch.setattr(peer_servers, "_node", lambda: "/usr/bin/node")

    def install(command: list[str], place: Path) -> None:
        asked = json.loads((place / "package.json").read_text())
        assert (place, asked["overrides"]) == (home, {"@hono/node-server": "1.13.8"})
        assert not server.exists()
        raise peer_servers.NoPeer("enough was seen")

    monkeypatch.setattr(peer_servers, "_install", install)
    with ExitStack() as stack, pytest.raises(peer_servers.NoPeer, match="enough was seen"):
        peer_servers.start_portkey(stack, "http://127.0.0.1:1/v1")
