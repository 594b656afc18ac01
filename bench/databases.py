"""What the database benchmarks run on: a SQLite file, a throwaway PostgreSQL, a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import ROOT, environment
from tests.support.postgres import (
    NoPostgres,
    Postgres,
    closed_database,
    create_database,
    drop_database,
)
from tests.support.server import Served

# utime and stime are fields 14 and 15 of /proc/PID/stat, counted from behind the name's ")".
_UTIME, _STIME = 11, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An empty database, and a directory for what a server keeps beside it."""

    database: str
    """sqlite or postgres"""
    url: str
    data_dir: Path

    def environment(self) -> dict[str, str]:
        """Environment variables of a process that works on this database."""
        return {
            **environment.clean(),
            "DJANGO_SETTINGS_MODULE": "helmdash.settings",
            "HELMDASH_DATA_DIR": str(self.data_dir),
            "DATABASE_URL": self.url,
        }

    def copy(self, name: str) -> Place:
        """The place as it is now, kept beside it under a name; one of that name is replaced.

        Nobody may work on the place meanwhile.
        """
        made = self._named(name)
        shutil.rmtree(made.data_dir, ignore_errors=True)
        if self.url:
            drop_database(made.url)
            of, to = (url.rpartition("/")[2] for url in (self.url, made.url))
            with closed_database(self.url):
                create_database(_server(self.url), to, template=of)
        half = made.data_dir.with_suffix(".part")
        shutil.rmtree(half, ignore_errors=True)
        # A copy that broke off has no directory of its name.
        shutil.copytree(self.data_dir, half).rename(made.data_dir)
        return made

    def copied(self, name: str) -> Place | None:
        """What `copy` kept under a name, by this run or an earlier one."""
        made = self._named(name)
        return made if made.data_dir.exists() else None

    def _named(self, name: str) -> Place:
        return Place(
            database=self.database,
            url=f"{self.url}_{name}" if self.url else "",
            data_dir=self.data_dir.with_name(f"{self.data_dir.name}-{name}"),
        )


@contextmanager
def places() -> Iterator[list[Place]]:
    """A SQLite place, and a PostgreSQL one where there is a server to start."""
    with tempfile.TemporaryDirectory(prefix="helmdash-bench-") as parent:
        # Where tests.support notes what it starts.
        os.environ["HELMDASH_DATA_DIR"] = parent
        found = [Place(database="sqlite", url="", data_dir=_directory(parent, "sqlite"))]
        try:
            server = Postgres.start()
        except NoPostgres as error:
            print(f"Not measured on PostgreSQL: {error}", file=sys.stderr)
            yield found
            return
        try:
            url = create_database(server.url("postgres"), "bench")
            yield [
                *found,
                Place(database="postgres", url=url, data_dir=_directory(parent, "postgres")),
            ]
        finally:
            server.stop()


@contextmanager
def wanted_places(default: str = "postgres") -> Iterator[list[Place]]:
    """Those that BENCH_DATABASES names; or the one that BENCH_DATABASE_URL or, for SQLite,
    BENCH_DIR names, which is kept."""
    wanted = os.environ.get("BENCH_DATABASES", default).split()
    url, directory = os.environ.get("BENCH_DATABASE_URL", ""), os.environ.get("BENCH_DIR")
    if not (url or directory):
        with places() as found:
            yield [place for place in found if place.database in wanted]
        return
    with ExitStack() as stack:
        kept = directory or stack.enter_context(tempfile.TemporaryDirectory(prefix="helmdash-"))
        os.environ["HELMDASH_DATA_DIR"] = kept
        path = Path(kept).resolve()
        path.mkdir(parents=True, exist_ok=True)
        yield [Place(database="postgres" if url else "sqlite", url=url, data_dir=path)]


@contextmanager
def serving(place: Place) -> Iterator[Served]:
    """`manage.py up` on the place."""
    served = Served(data_dir=place.data_dir, database_url=place.url)
    # On a busy machine the tables of a first start take longer than a start is waited for.
    command = [sys.executable, "manage.py", "up", "--setup-only"]
    subprocess.run(
        command, cwd=ROOT, env=served.environment(), stdout=subprocess.DEVNULL, check=True
    )
    served.start()
    try:
        yield served
    finally:
        served.kill()


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used so far, in user and kernel. Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds(pid: int) -> float:
    """The same of a process and of what it has started and still runs: large requests have a worker
    process of their own."""
    return cpu_seconds(pid) + sum(map(tree_cpu_seconds, children_of(pid)))


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that still run. Linux only."""
    # Of each thread its own: the writer process is started by another one than the first.
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


class Worker:
    """A Python module in a process of its own, on one place: a line of JSON in, one out."""

    def __init__(self, module: str, place: Place) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=place.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **command: Any) -> Any:
        """Send a command; gives what the worker answers. Raises RuntimeError when it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the benchmark's worker ended with {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def _server(url: str) -> str:
    """The URL of the database that each PostgreSQL has, of the server of a URL."""
    return url.rpartition("/")[0] + "/postgres"


def _directory(parent: str, name: str) -> Path:
    path = Path(parent) / name
    path.mkdir()
    return path
