"""Pages and API lists, timed inside the process through Django's whole request cycle.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench import addresses  # noqa: E402
from helmdash.core.access.permissions import SHELL  # noqa: E402
from helmdash.operations.access import keys, members  # noqa: E402
from helmdash.operations.demo import generating  # noqa: E402
from helmdash.queries.access.access import ProjectInfo, find_project  # noqa: E402
from helmdash.queries.calls import calls  # noqa: E402

# Requests that a time is told from.
TIMES = 5
_KEY_NAME = "bench"


@dataclass(frozen=True, slots=True)
class _Address:
    name: str
    kind: str
    """page or list"""
    read: Callable[[], None]


def main() -> None:
    """Answer commands until stdin ends."""
    opened: list[_Address] = []
    for line in sys.stdin:
        command = json.loads(line)
        match command["do"]:
            case "prepare":
                answer: Any = _prepare(command["calls"])
            case "open_large":
                # A copy that was kept since an earlier version has that version's tables.
                call_command("up", "--setup-only", stdout=StringIO())
                opened = list(_addresses(is_large=True))
                for address in opened:
                    address.read()
                answer = [f"{address.kind} {address.name}" for address in opened]
            case "read":
                answer = _once(opened[command["number"]])
            case _:
                answer = [_time(address) for address in _addresses(is_large=False)]
        # The commands of Django print; the protocol has stdout to itself.
        print(json.dumps(answer), file=_protocol, flush=True)


def _prepare(count: int) -> dict[str, Any]:
    """Tables, budgets, static files and so many calls, unless they are there."""
    call_command("up", "--setup-only", stdout=StringIO())
    project = find_project(slug=generating.GENERATED_SLUG)
    began = time.perf_counter()
    if project is None or not calls.newest_mark(project_id=project.id):
        generating.generate_calls(actor=SHELL, calls=count, now=timezone.now())
    return {"seconds": time.perf_counter() - began}


def _addresses(*, is_large: bool) -> Iterator[_Address]:
    project = find_project(slug=generating.GENERATED_SLUG)
    assert project is not None
    of = addresses.known(project)
    page = _page_reader(project)
    for name, path in (*addresses.pages(of), *(addresses.more_pages(of) if is_large else ())):
        yield _Address(name, "page", partial(page, path))
    api = _api_reader(project)
    for name, path in addresses.lists(of):
        yield _Address(name, "list", partial(api, path))


def _time(address: _Address) -> dict[str, Any]:
    """The median of some requests in milliseconds, after one that warms up and counts queries."""
    with CaptureQueriesContext(connection) as queries:
        address.read()
        # Now, because each further request begins by forgetting them.
        count = len(queries)
    taken = [_once(address) for _ in range(TIMES)]
    return {
        "name": address.name,
        "kind": address.kind,
        "ms": statistics.median(each["ms"] for each in taken),
        "cpu_ms": statistics.median(each["cpu_ms"] for each in taken),
        "queries": count,
    }


def _once(address: _Address) -> dict[str, float]:
    """One request, in milliseconds and in those of CPU."""
    began, before = time.perf_counter(), _cpu_seconds()
    address.read()
    worked = _cpu_seconds() - before
    return {"ms": (time.perf_counter() - began) * 1000, "cpu_ms": worked * 1000}


def _cpu_seconds() -> float:
    """CPU time of this process so far, and of the database's process that works for it."""
    pid = connection.connection.info.backend_pid if connection.vendor == "postgresql" else 0
    if not pid:
        return time.process_time()
    try:
        # Those of /proc/PID/stat are ticks of ten milliseconds.
        nanoseconds = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except OSError:  # on another host, or a kernel that does not tell
        return time.process_time()
    return time.process_time() + nanoseconds / 1e9


def _page_reader(project: ProjectInfo) -> Callable[[str], None]:
    client = Client(HTTP_HOST="localhost")
    client.force_login(get_user_model().objects.get(username=members.ADMIN_NAME))
    _get(client, f"/?project={project.slug}")
    return lambda path: _get(client, path)


def _api_reader(project: ProjectInfo) -> Callable[[str], None]:
    name = f"{_KEY_NAME}-{time.time_ns()}"
    key = keys.create_key(actor=SHELL, name=name, scopes=("read",), project=project.slug).secret
    client = Client(HTTP_HOST="localhost", HTTP_AUTHORIZATION=f"Bearer {key}")
    return lambda path: _get(client, path)


def _get(client: Client, path: str) -> None:
    response = client.get(path)
    # What leads to one thing alone is a redirect.
    if response.status_code not in (200, 302):
        raise RuntimeError(f"{path} answered {response.status_code}: {response.content[:300]!r}")


if __name__ == "__main__":
    _protocol = sys.stdout
    sys.stdout = sys.stderr
    main()
