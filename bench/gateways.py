"""What the gateway benchmarks run: an upstream, two floors, HelmDash, and a load on them."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.databases import Place, Worker
from bench.turns import Target, wait_until
from tests.support import environment
from tests.support.processes import (
    Process,
    free_port,
    kill,
    kill_left_over,
    spawn_python,
    wait_for_http,
)
from tests.support.server import Served

DIRECT, LOWER, UPPER, OWN = "directly", "aiohttp floor", "httpx floor", "HelmDash"

_COMPLETIONS = "/v1/chat/completions"
# As quick as `manage.py up` makes uvicorn.
_UVICORN = ("--loop", "uvloop", "--http", "httptools", "--lifespan", "off", "--no-access-log")
# What is accepted has to be in the database by then, whatever the backlog.
_MOST_LAG_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is running, and who puts load on it."""

    upstream_url: str
    """Such as http://127.0.0.1:4711/v1."""
    place: Place
    server: Served
    targets: list[Target]
    load: Worker

    def target(self, name: str) -> Target:
        """The target of that name."""
        return next(target for target in self.targets if target.name == name)


@contextmanager
def ground() -> Iterator[Ground]:
    """Start the upstream, the two floors, HelmDash on an empty database, and the load."""
    with ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="helmdash-bench-")))
        # Where tests.support notes what it starts, and what is left there writes until it ends.
        os.environ["HELMDASH_DATA_DIR"] = str(parent)
        stack.callback(kill_left_over, parent)
        place = Place(database="sqlite", url="", data_dir=parent / "own")
        place.data_dir.mkdir()
        upstream_port, upstream = start_module(stack, parent, "upstream", "bench.upstream_stub")
        upstream_url = f"http://127.0.0.1:{upstream_port}/v1"
        direct = Target(
            name=DIRECT, url=f"http://127.0.0.1:{upstream_port}{_COMPLETIONS}", pids=[upstream.pid]
        )
        floors = [
            _floor(stack, parent, name, module, upstream_url)
            for name, module in ((LOWER, "with_aiohttp"), (UPPER, "with_httpx"))
        ]
        server = _serve(stack, place, upstream_url)
        own = Target(
            name=OWN,
            url=server.base_url + _COMPLETIONS,
            pids=[server.process.pid],
            headers=server.headers,
            settle=lambda sent: _settle(place, sent),
        )
        yield Ground(
            upstream_url=upstream_url,
            place=place,
            server=server,
            targets=[direct, *floors, own],
            load=stack.enter_context(Worker("bench.load", place)),
        )


def stored_calls(place: Place) -> int:
    """Calls in the database, read beside the server that writes there."""
    file = f"file:{place.data_dir}/helmdash.sqlite3?mode=ro"
    with closing(sqlite3.connect(file, uri=True)) as database:
        count: int = database.execute("SELECT count(*) FROM records_call").fetchone()[0]
        return count


def _settle(place: Place, sent: int) -> float:
    return wait_until(lambda: stored_calls(place) >= sent, most_seconds=_MOST_LAG_SECONDS)


def _serve(stack: ExitStack, place: Place, upstream_url: str) -> Served:
    server = Served(
        data_dir=place.data_dir,
        database_url="",
        settings={
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": upstream_url,
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        },
    )
    server.start()
    stack.callback(server.kill)
    return server


def _floor(stack: ExitStack, parent: Path, name: str, module: str, upstream_url: str) -> Target:
    port, process = start_floor(stack, parent, module, env={"BENCH_UPSTREAM": upstream_url})
    return Target(name=name, url=f"http://127.0.0.1:{port}{_COMPLETIONS}", pids=[process.pid])


def start_floor(
    stack: ExitStack, parent: Path, module: str, *, env: dict[str, str]
) -> tuple[int, Process]:
    """Start a module of bench.floors, until the stack closes; gives its port and process."""
    uvicorn = ("uvicorn", f"bench.floors.{module}:app", *_UVICORN, "--log-level", "warning")
    return start_module(stack, parent, module, *uvicorn, "--port", env=env)


def start_module(
    stack: ExitStack,
    parent: Path,
    name: str,
    module: str,
    *arguments: str,
    env: dict[str, str] | None = None,
) -> tuple[int, Process]:
    """Run a module that takes its port as the last argument, and wait until it answers."""
    port, log = free_port(), parent / f"{name}.log"
    process = spawn_python(
        "-m", module, *arguments, str(port), log=log, env={**environment.clean(), **(env or {})}
    )
    stack.callback(kill, process)
    wait_for_http(f"http://127.0.0.1:{port}/v1/models", process=process, log=log)
    return port, process
