"""Two hosts on one PostgreSQL under load, one killed, one stopped, the database restarted.

Run by name. Each host has a data directory, a port and two workers. Programs report calls, agents
call a model by the gateway, people and programs read, by both hosts in turns; meanwhile one host is
killed in the middle of a job and started again, the other is stopped in order and started again,
and the database is stopped for some seconds. Then all that was answered with 2xx has to be stored,
each once, conversations numbered without a gap, the ledger to add up, the rollups to tell what the
calls tell, and the job to be done. HOSTS_SECONDS is how long a stage takes (5).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg

from bench.gateways import start_module
from bench.table import Row
from tests.support.postgres import Postgres, create_database
from tests.support.processes import run_python
from tests.support.server import Served

STAGE_SECONDS = float(os.environ.get("HOSTS_SECONDS", "5"))
REPORTERS, AGENTS, READERS = 4, 4, 2
TALKS = 6
# Deleted in steps of 2,000, so that a kill comes between two of them.
EXPIRED, BATCH = 12_000, 500
KEPT_DAYS = 30
# A lease of 30 s, a look each 2 s, and the deletion itself on a busy machine.
_JOB_SECONDS = 120.0
_SETTLE_SECONDS = 60.0
_API = ("/api/v1/conversations", "/api/v1/calls?limit=20")
_PAGES = ("/", "/conversations/", "/calls/", "/models/", "/settings/recorder/")
_TOKEN = re.compile(r'csrfmiddlewaretoken" value="([^"]+)')


@dataclass(slots=True, kw_only=True)
class Load:
    """Who asks the hosts, and what they were answered."""

    hosts: list[Served]
    session: str
    """The cookie of somebody who is signed in to the pages, of either host."""
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    reported: list[str] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to ask."""
        work = [self._report] * REPORTERS + [self._call] * AGENTS + [self._read] * READERS
        for number, each in enumerate(work):
            thread = threading.Thread(target=self._repeat, args=(each, number), daemon=True)
            self.threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Ask no more; returns when the last answers are here."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)

    def _repeat(self, work: Callable[[httpx.Client, Served, str], None], number: int) -> None:
        with httpx.Client(timeout=30, trust_env=False) as client:
            for turn in itertools.count():
                if self.stopping.is_set():
                    return
                host = self.hosts[(turn + number) % len(self.hosts)]
                try:
                    work(client, host, f"{number}-{turn}")
                except httpx.HTTPError as error:
                    self._note(self.faults, type(error).__name__)
                    time.sleep(0.05)

    def _report(self, client: httpx.Client, host: Served, name: str) -> None:
        body = {
            "id": f"report-{name}",
            "conversation": f"talk-{hash(name) % TALKS}",
            "model": "openai/gpt-4o",
            "usage": {"prompt_tokens": 9_000, "completion_tokens": 30},
        }
        answer = client.post(f"{host.base_url}/api/v1/calls", json=body, headers=host.headers)
        if answer.status_code in (200, 201):
            with self.lock:
                self.reported.append(str(body["id"]))
        else:
            self._note(self.faults, f"report {answer.status_code}")

    def _call(self, client: httpx.Client, host: Served, name: str) -> None:
        messages = [{"role": "user", "content": f"Say something about {name}."}]
        answer = client.post(
            f"{host.base_url}/v1/chat/completions",
            json={"model": "mock-fast", "messages": messages},
            headers={**host.headers, "x-helmdash-conversation": f"agent-{hash(name) % TALKS}"},
        )
        if answer.status_code == 200:
            with self.lock:
                self.called.append(answer.headers["x-helmdash-call-id"])
        else:
            self._note(self.faults, f"gateway {answer.status_code}")

    def _read(self, client: httpx.Client, host: Served, name: str) -> None:
        path = (*_API, *_PAGES)[hash(name) % len((*_API, *_PAGES))]
        headers = {"cookie": f"sessionid={self.session}"} if path in _PAGES else host.headers
        answer = client.get(host.base_url + path, headers=headers)
        self._note(self.reads, str(answer.status_code))

    def _note(self, counts: Counter[str], what: str) -> None:
        with self.lock:
            counts[what] += 1


def rows() -> list[Row]:
    """Walk through it; takes about two minutes."""
    with ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="helmdash-hosts-")))
        # Where tests.support notes what it starts.
        os.environ["HELMDASH_DATA_DIR"] = str(parent)
        postgres = Postgres.start()
        stack.callback(postgres.stop)
        url = create_database(postgres.url("postgres"), "hosts")
        port, _ = start_module(stack, parent, "upstream", "bench.upstream_stub")
        first, second = _hosts(stack, parent, url, f"http://127.0.0.1:{port}/v1")
        _make_expired(url, first)
        load = Load(hosts=[first, second], session=_session(first))
        load.start()
        stack.callback(load.stopping.set)
        _say("a host is killed in the middle of a job")
        holder = _kill_in_a_job(url, first, second)
        _pass()
        _say("a host is stopped and started")
        first.stop()
        _pass()
        first.start()
        _say("the database is stopped")
        postgres.halt()
        _pass()
        postgres.resume()
        _pass()
        load.stop()
        _settle([first, second])
        job = _until_done(url)
        return list(_verdicts(load, url, first, holder, job))


def _say(stage: str) -> None:
    print(f"  {stage} ...", file=sys.stderr, flush=True)


def _pass() -> None:
    time.sleep(STAGE_SECONDS)


def _hosts(stack: ExitStack, parent: Path, url: str, upstream: str) -> list[Served]:
    made: list[Served] = []
    for name in ("one", "two"):
        settings = {
            "HELMDASH_WORKERS": "2",
            "HELMDASH_SECRET_KEY": "of-both-hosts",
            "HELMDASH_RETAIN_HOUR": "0",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": upstream,
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        }
        host = Served(data_dir=parent / name, database_url=url, settings=settings)
        if made:
            host.api_key, host.admin_password = made[0].api_key, made[0].admin_password
        # On a busy machine the tables of a first start take longer than a start is waited for.
        host.manage("up", "--setup-only").check_returncode()
        host.start()
        stack.callback(host.kill)
        made.append(host)
    return made


def _session(host: Served) -> str:
    """Sign in; gives the cookie."""
    with httpx.Client(base_url=host.base_url, timeout=30) as person:
        token = _TOKEN.search(person.get("/login/").text)
        form = {"username": "admin", "password": host.admin_password}
        person.post("/login/", data={**form, "csrfmiddlewaretoken": token[1] if token else ""})
        return person.cookies["sessionid"]


def _kill_in_a_job(url: str, first: Served, second: Served) -> str:
    """Kill the host that deletes what is too old, while it does; and start it again. Its name."""
    with psycopg.connect(url, autocommit=True) as asked:
        asked.execute("UPDATE records_job SET due_at = now() WHERE name = 'retention'")
        end = time.monotonic() + _JOB_SECONDS
        holder = ""
        while not holder or _expired(asked) == EXPIRED:
            found = asked.execute(
                "SELECT holder FROM records_job WHERE name = 'retention' AND until > now()"
            ).fetchone()
            holder = str(found[0]) if found else ""
            if time.monotonic() > end:
                raise RuntimeError("nobody began to delete what is too old")
    # Processes are named after the host, which is one here, and their number.
    host = first if _is_of(holder, first) else second
    host.kill()
    host.start()
    return holder


def _is_of(holder: str, host: Served) -> bool:
    """Whether a process that is named so belongs to a host."""
    with suppress(ProcessLookupError):
        return os.getpgid(int(holder.split("-")[-2])) == host.process.pid
    return False


def _make_expired(url: str, host: Served) -> None:
    """Calls that are older than the project keeps them, in a month of which it keeps others."""
    at = datetime.now(UTC) - timedelta(days=KEPT_DAYS, hours=1)
    for batch in range(EXPIRED // BATCH):
        calls = [
            {
                "id": f"expired-{batch}-{n}",
                "conversation": f"expired-{batch}",
                "model": "openai/gpt-4o",
                "started_at": at.isoformat(),
            }
            for n in range(BATCH)
        ]
        url_of_batch = f"{host.base_url}/api/v1/calls/batch"
        body = {"calls": calls}
        while httpx.post(url_of_batch, json=body, headers=host.headers, timeout=60).is_error:
            time.sleep(0.5)
    with psycopg.connect(url, autocommit=True) as asked:
        asked.execute("UPDATE records_project SET retention_days = %s", [KEPT_DAYS])


def _expired(asked: psycopg.Connection[Any]) -> int:
    found = asked.execute("SELECT count(*) FROM records_call WHERE name LIKE 'expired-%'")
    return int((found.fetchone() or (0,))[0])


def _settle(hosts: list[Served]) -> None:
    """Until nothing waits to be stored."""
    end = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            text = httpx.get(f"{hosts[0].base_url}/metrics", headers=hosts[0].headers).text
            waiting = [x for x in text.splitlines() if x.startswith("helmdash_recorder_waiting ")]
            if waiting and float(waiting[0].split()[1]) == 0:
                return
        time.sleep(0.5)


def _until_done(url: str) -> tuple[Any, ...]:
    """The row of the job when it was done: who did it last, outcome, turns, expired calls left."""
    end = time.monotonic() + _JOB_SECONDS
    with psycopg.connect(url, autocommit=True) as asked:
        while True:
            found = asked.execute(
                "SELECT holder, outcome, turns, until IS NULL FROM records_job"
                " WHERE name = 'retention'"
            ).fetchone() or ("", "", 0, False)
            if (found[1] == "done" and found[3]) or time.monotonic() > end:
                return (*found[:3], _expired(asked))
            time.sleep(0.5)


def _verdicts(
    load: Load, url: str, host: Served, killed: str, job: tuple[Any, ...]
) -> Iterator[Row]:
    listed = run_python("-m", "tests.recorder.driver", "list", env=host.environment(), timeout=120)
    found = json.loads(listed.stdout)
    names = Counter(found["calls"])
    answered = [*load.reported, *load.called]
    missing = [name for name in answered if name not in names]
    twice = [name for name, times in names.items() if times > 1]
    ledger = found["ledger"]
    settled = sum(ledger[each] for each in ("stored", "duplicate", "rejected", "dropped"))
    reads = ", ".join(f"{status}: {count}" for status, count in sorted(load.reads.items()))
    told = ", ".join(f"{what}: {count}" for what, count in sorted(load.faults.items()))
    yield _row("reports answered", f"{len(load.reported):,}", told, None)
    yield _row("calls of the gateway answered", f"{len(load.called):,}", "", None)
    yield _row("reads, by status", reads, "", None)
    yield _row("answered and not stored", f"{len(missing)}", "", not missing)
    yield _row("stored twice", f"{len(twice)}", "", not twice)
    with psycopg.connect(url, autocommit=True) as asked:
        gaps = _one(asked, _GAPS)
    yield _row("conversations with a gap or a double", f"{gaps}", "", gaps == 0)
    adds_up = ledger["accepted"] == settled + ledger["waiting"] and not ledger["waiting"]
    yield _row("the ledger", f"{ledger['accepted']:,} accepted", f"{settled:,} settled", adds_up)
    lost = ledger["dropped"] + ledger["rejected"]
    yield _row("dropped or rejected", f"{lost}", "", lost == 0)
    stored = len(found["calls"])
    told = f"{stored:,} stored"
    yield _row("calls, by the rollups", f"{found['held']:,}", told, found["held"] == stored)
    holder, outcome, turns, left = job
    is_done = outcome == "done" and left == 0 and holder != killed
    told = f"{outcome}, {left} left, turn {turns}"
    yield _row("retention after the kill", told, f"{killed}, then {holder}", is_done)


_GAPS = (
    "SELECT count(*) FROM (SELECT conversation_id, max(generation) AS m, count(*) AS n,"
    " count(DISTINCT generation) AS d FROM records_call GROUP BY 1) x WHERE m <> n OR n <> d"
)


def _one(asked: psycopg.Connection[Any], statement: str) -> int:
    return int((asked.execute(statement.encode()).fetchone() or (0,))[0])


def _row(name: str, figure: str, against: str, ok: bool | None) -> Row:
    return Row(name=name, figure=figure, against=against, ratio=None, goal="", ok=ok)
