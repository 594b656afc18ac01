"""Pages and API lists, timed inside the process through Django's whole request cycle.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any
from urllib.parse import urlencode

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from helmdash.core.access.permissions import SHELL  # noqa: E402
from helmdash.operations.access import keys, members  # noqa: E402
from helmdash.operations.demo import generating  # noqa: E402
from helmdash.queries import calls  # noqa: E402
from helmdash.queries.access import ProjectInfo, find_project  # noqa: E402
from helmdash.queries.call_filters import CallFilters  # noqa: E402
from helmdash.queries.conversations import conversations  # noqa: E402
from helmdash.queries.conversations.conversations import ConversationFilters  # noqa: E402

TIMES = 20
_KEY_NAME = "bench"
# The first conversation that the first part of bench.large makes.
LONG_CONVERSATION = "t0-agent-000000"


def main() -> None:
    """Answer commands until stdin ends."""
    for line in sys.stdin:
        command = json.loads(line)
        match command["do"]:
            case "prepare":
                answer: Any = _prepare(command["calls"])
            case "measure_large":
                answer = list(_measure(_more_pages))
            case _:
                answer = list(_measure())
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


_Named = Iterator[tuple[str, str]]


def _measure(
    more: Callable[[ProjectInfo], _Named] = lambda project: iter(()),
) -> Iterator[dict[str, Any]]:
    project = find_project(slug=generating.GENERATED_SLUG)
    assert project is not None
    page = _page_reader(project)
    for name, path in (*_pages(project), *more(project)):
        yield _time(name, "page", partial(page, path))
    api = _api_reader(project)
    for name, path in _lists(project):
        yield _time(name, "list", partial(api, path))


def _time(name: str, kind: str, read: Callable[[], None]) -> dict[str, Any]:
    """The median of 20 requests in milliseconds, after one that warms up and counts queries."""
    with CaptureQueriesContext(connection) as queries:
        read()
        # Now, because each further request begins by forgetting them.
        count = len(queries)
    taken, worked = [], []
    for _ in range(TIMES):
        began, before = time.perf_counter(), time.process_time()
        read()
        worked.append(time.process_time() - before)
        taken.append(time.perf_counter() - began)
    return {
        "name": name,
        "kind": kind,
        "ms": statistics.median(taken) * 1000,
        "least_ms": min(taken) * 1000,
        "least_cpu_ms": min(worked) * 1000,
        "queries": count,
    }


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
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}: {response.content[:300]!r}")


def _pages(project: ProjectInfo) -> Iterator[tuple[str, str]]:
    longest = _longest_conversation(project)
    call = calls.page(project_id=project.id, filters=CallFilters(), limit=1).items[0]
    yield "overview", "/"
    yield "conversations", "/conversations/"
    yield "conversations, one level", "/conversations/?level=critical"
    yield "conversations, search", "/conversations/?q=0123"
    yield "one conversation, the longest", f"/conversations/{longest}/"
    yield "calls", "/calls/"
    yield "calls, one model and cause", "/calls/?model=openai%2Fgpt-4o&cause=refused"
    yield "calls, search", "/calls/?q=call-0001"
    yield "one call", f"/calls/{call.id}/"


def _more_pages(project: ProjectInfo) -> _Named:
    """What else a project of a year has."""
    now = timezone.now()
    for days in (1, 30, 365):
        yield f"models, {days} days", f"/models/?since={24 * days}h"
    yield "models", "/models/"
    yield "trims", "/trims/"
    yield "plans", "/plans/"
    yield "settings", "/settings/"
    half = urlencode({"until": (now - timedelta(days=180)).isoformat()})
    yield "calls of half a year ago", f"/calls/?{half}"
    yield "conversations, one name", f"/conversations/?q={LONG_CONVERSATION}"


def _lists(project: ProjectInfo) -> Iterator[tuple[str, str]]:
    longest = _longest_conversation(project)
    day = timezone.now() - timedelta(days=10)
    range_ = {"since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()}
    deep = calls.page(project_id=project.id, filters=CallFilters(until=day), limit=1).next
    for name, query in (
        ("GET /calls", {}),
        ("GET /calls, 500 rows", {"limit": 500}),
        ("GET /calls, deep cursor", {"cursor": deep}),
        ("GET /calls by conversation", {"conversation": longest}),
        ("GET /calls by model", {"model": "ollama/llama3.1:8b"}),
        ("GET /calls by level", {"level": "critical"}),
        ("GET /calls by cause", {"cause": "refused"}),
        ("GET /calls by finish reason", {"finish_reason": "refusal"}),
        ("GET /calls by common finish reason", {"finish_reason": "stop"}),
        ("GET /calls by purpose", {"purpose": "verify"}),
        ("GET /calls by pack", {"pack": "coder"}),
        ("GET /calls by a pack nobody has", {"pack": "nobody"}),
        ("GET /calls in a time range", range_),
        ("GET /calls search, one id", {"q": "call-00001234"}),
        ("GET /calls search, many ids", {"q": "call-0"}),
        ("GET /calls search, the oldest ids", {"q": "call-0001"}),
        ("GET /calls search, conversations", {"q": "agent-00"}),
        ("GET /calls search, nothing", {"q": "nothing"}),
        (
            "GET /calls, filters that exclude each other",
            {"level": "critical", "cause": "timed_out"},
        ),
    ):
        yield name, f"/api/v1/calls?{urlencode(query)}"
    for name, query in (
        ("GET /conversations", {}),
        ("GET /conversations by level", {"level": "critical"}),
        ("GET /conversations by model", {"model": "ollama/llama3.1:8b"}),
        ("GET /conversations search", {"q": "0123"}),
        ("GET /conversations search, nothing", {"q": "nothing"}),
        ("GET /conversations in a time range", range_),
    ):
        yield name, f"/api/v1/conversations?{urlencode(query)}"
    yield "GET /conversations/{id}", f"/api/v1/conversations/{longest}"
    yield "GET /conversations/{id}/timeline", f"/api/v1/conversations/{longest}/timeline"
    yield "GET /budgets", "/api/v1/budgets"


def _longest_conversation(project: ProjectInfo) -> str:
    """The one of a large load that is made long; else the longest of the newest 500."""
    made = conversations.standing(project_id=project.id, conversation_id=LONG_CONVERSATION)
    if made is not None:
        return made.id
    newest = conversations.page(
        project_id=project.id, filters=ConversationFilters(), limit=500
    ).items
    return max(newest, key=lambda row: row.generation).id


if __name__ == "__main__":
    _protocol = sys.stdout
    sys.stdout = sys.stderr
    main()
