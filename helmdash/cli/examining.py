"""What `manage.py doctor` looks at. Nothing of it is a secret or a text of anybody's."""

from __future__ import annotations

import platform
import shutil
import socket
import sqlite3
import ssl
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import django
import psycopg
from django.db import Error as DatabaseFault

from helmdash import __version__, conf, places
from helmdash.cli.refused_upstreams import refusal_of
from helmdash.core.text.counts import count_of
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.installation import COMMAND
from helmdash.operations.backup.spool import is_in_use
from helmdash.operations.database.replica import replica
from helmdash.operations.recorder.files.stuck_files import stuck_files
from helmdash.queries import jobs, ledger, rollups
from helmdash.queries.access.access import projects
from helmdash.queries.database import condition
from helmdash.queries.upstreams import endpoints
from helmdash.upstream.client import tls_context

_CONNECT_SECONDS = 3.0
# Less is soon nothing: logs of a day, one backup's snapshot.
_LEAST_FREE_BYTES = 512 * 1024 * 1024
_READ_AGAIN = (
    "Calls may wait in it: let the server's user read and write it, or take away what is no file "
    "of HelmDash's, and restart the server; or delete it, where they need not be kept"
)
_OWN_AUTHORITY = (
    "if its certificate is of your company's own authority, name that authority's file in "
    "SSL_CERT_FILE for the server"
)
# Sessions and sign-in links bear some seconds; figures by the hour bear a minute.
_MOST_SKEW_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. problem: what is wrong and what to do; "" where nothing is."""

    subject: str
    name: str
    value: str
    problem: str = ""


def examine(*, now: datetime) -> Iterator[Finding]:
    """Everything, in the order a reader wants it; what fails is a finding and stops nothing."""
    env = conf.env()
    yield from _program()
    yield from _settings(env)
    yield from _directory(env)
    schema = _schema(env)
    yield schema
    if not schema.problem:
        yield from _guarded("database", lambda: _database(now))
        yield from _replica()
        yield from _guarded("records", lambda: _records(now))
        yield from _guarded("upstream", _upstreams)


def _program() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding(subject="program", name="helmdash", value=__version__)
    yield Finding(subject="program", name="python", value=version)
    yield Finding(subject="program", name="platform", value=platform.platform())
    yield Finding(subject="program", name="django", value=django.get_version())
    yield Finding(subject="program", name="psycopg", value=psycopg.__version__)
    yield Finding(subject="program", name="sqlite library", value=sqlite3.sqlite_version)


def _settings(env: conf.Env) -> Iterator[Finding]:
    """Those that are set; never the value of a secret one."""
    for field in conf.Env.model_fields:
        name = conf.given_variable(field)
        if name:
            yield Finding(subject="setting", name=name, value=conf.shown(field, env))
    for line in conf.unknown_variables():
        yield Finding(subject="setting", name="unknown", value=line)
    for line in conf.idle_variables(env):
        yield Finding(subject="setting", name="idle", value=line)
    for name in conf.unused_proxies():
        yield Finding(subject="setting", name=name, value="not used: connections go out directly")
    if env.workers > 1 and not env.database_url.startswith("postgres"):
        yield Finding(
            subject="setting",
            name="HELMDASH_WORKERS",
            value=str(env.workers),
            problem="several processes on SQLite wait for each other; use PostgreSQL, or one",
        )


def _directory(env: conf.Env) -> Iterator[Finding]:
    problem = ""
    try:
        places.check_directory(env)
    except conf.BadSetting as error:
        problem = str(error)
    yield Finding(subject="data", name="directory", value=str(env.data_dir), problem=problem)
    if not env.data_dir.is_dir():
        return
    usage = shutil.disk_usage(env.data_dir)
    is_short = usage.free < max(_LEAST_FREE_BYTES, env.spool_max_bytes)
    yield Finding(
        subject="data",
        name="free",
        value=f"{_bytes(usage.free)} of {_bytes(usage.total)}",
        problem="the disk is nearly full: the spool would find no room" if is_short else "",
    )
    yield from _key_file(env)
    yield from _spool(env.data_dir / "spool")


def _key_file(env: conf.Env) -> Iterator[Finding]:
    path = env.data_dir / conf.SECRET_KEY_FILE
    if env.secret_key:
        yield Finding(subject="data", name="secret key", value="from HELMDASH_SECRET_KEY")
    elif path.exists():
        is_open = bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
        problem = f"others may read it: chmod 600 {path}" if is_open else ""
        yield Finding(subject="data", name="secret key", value="in a file", problem=problem)


def _spool(path: Path) -> Iterator[Finding]:
    files = [each for each in path.glob("*") if each.is_file()]
    size = sum(each.stat().st_size for each in files)
    yield Finding(
        subject="data",
        name="spool",
        value=f"{count_of(len(files), 'file')}, {_bytes(size)}",
    )
    for each in stuck_files(path):
        yield Finding(
            subject="data",
            name="stuck files",
            value=f"{path}/{each.process}*",
            problem=f"{each.why}. {_READ_AGAIN}",
        )
    running = "a server runs on it" if is_in_use(path) else "no server runs on it"
    yield Finding(subject="data", name="server", value=running)


def _schema(env: conf.Env) -> Finding:
    problem, value = "", "none"
    try:
        schema = places.look_at_schema(env)
        value = f"release {schema.release}, this code is {places.SCHEMA_RELEASE}"
        places.check_schema(schema, env, brings=False)
    except conf.BadSetting as error:
        problem = str(error)
    return Finding(subject="database", name="tables", value=value, problem=problem)


def _guarded(subject: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except DatabaseFault as error:
        problem = places.database_problem(error)
        yield Finding(subject=subject, name="answer", value="none", problem=problem)


def _database(now: datetime) -> Iterator[Finding]:
    facts = condition.database_facts()
    yield Finding(subject="database", name="kind", value=f"{facts.kind} {facts.version}")
    yield Finding(subject="database", name="size", value=_bytes(facts.size_bytes or 0))
    for name, value in facts.modes.items():
        yield Finding(subject="database", name=name, value=value)
    yield Finding(
        subject="database",
        name="migrations to come",
        value=", ".join(facts.missing) or "none",
        problem=f"run `{COMMAND} up`" if facts.missing else "",
    )
    if facts.unknown:
        value = ", ".join(facts.unknown)
        yield Finding(subject="database", name="of a newer release", value=value)
    if facts.clock is not None:
        skew = abs((facts.clock - now).total_seconds())
        problem = "set both clocks by NTP" if skew > _MOST_SKEW_SECONDS else ""
        yield Finding(subject="database", name="clock skew", value=f"{skew:.1f} s", problem=problem)


def _replica() -> Iterator[Finding]:
    found = replica()
    if found is None:
        return
    has_all = found.has_all(_CONNECT_SECONDS)
    problem = found.state().problem
    yield Finding(
        subject="database",
        name="replica",
        value="has all that the primary has" if has_all else "the primary answers for it",
        problem="" if has_all else f"HELMDASH_REPLICA_URL: {problem}",
    )


def _records(now: datetime) -> Iterator[Finding]:
    facts = condition.row_facts(now=now)
    for name in ("projects", "keys", "people", "calls", "conversations"):
        count = getattr(facts, name)
        more = " or more" if name in facts.bounded else ""
        yield Finding(subject="records", name=name, value=f"{count}{more}")
    is_ahead = facts.latest_call_at is not None and (
        (facts.latest_call_at - now).total_seconds() > _MOST_SKEW_SECONDS
    )
    yield Finding(
        subject="records",
        name="newest call",
        value=facts.latest_call_at.isoformat() if facts.latest_call_at else "none",
        problem="it was recorded in the future: this clock is behind" if is_ahead else "",
    )
    said = ", ".join(f"{cause} {count}" for cause, count in facts.recent_causes) or "none"
    yield Finding(subject="records", name="calls of 24 hours", value=str(facts.recent_calls))
    yield Finding(subject="records", name="failed, by cause", value=said)
    yield from _ledger(facts, now)
    yield from _rollups(now)
    yield from _jobs()


def _jobs() -> Iterator[Finding]:
    """Overdue is no fault by itself: perhaps no server runs."""
    for job in jobs.jobs():
        last = f"{job.outcome} {job.ended_at:%Y-%m-%d %H:%M} UTC" if job.ended_at else "never done"
        parts = [f"running since {job.started_at:%H:%M} UTC" if job.is_running else "", last]
        parts += [job.told, f"next {job.due_at:%Y-%m-%d %H:%M} UTC" if job.due_at else ""]
        problem = f"{count_of(job.failures, 'failure')} in a row: read the log of {job.holder}"
        yield Finding(
            subject="job",
            name=job.name,
            value=", ".join(filter(None, parts)),
            problem=problem if job.failures else "",
        )


def _rollups(now: datetime) -> Iterator[Finding]:
    waiting = rollups.waiting(now=now)
    # No fault: while no server runs, nobody adds them, and readers count them along.
    age = f", for {waiting.age_s:.0f} s" if waiting.calls else ""
    yield Finding(subject="rollups", name="calls to be added", value=f"{waiting.calls}{age}")
    for each in rollups.countings():
        # A server that runs counts them.
        reached = f"{each.down_to:%Y-%m-%d %H:%M}" if each.down_to else "not begun"
        first = f"{each.first_call_at:%Y-%m-%d %H:%M}" if each.first_call_at else "none"
        value = f"{each.project}: counted back to {reached}, first call {first}"
        yield Finding(subject="rollups", name="older calls", value=value)


def _ledger(facts: condition.RowFacts, now: datetime) -> Iterator[Finding]:
    total = ledger.totals()
    value = f"{facts.running} running, {facts.silent} ended without a shutdown"
    yield Finding(subject="recorder", name="processes", value=value)
    for name in ("accepted", "stored", "duplicate", "waiting", "spooled", "in_flight_lost"):
        yield Finding(subject="recorder", name=name, value=str(getattr(total, name)))
    lately = [each.counts for each in ledger.processes() if now - each.seen_at < condition.RECENTLY]
    for name, why in (
        ("rejected", "see spool/rejected.ndjson in the data directory"),
        ("dropped", "the spool was full: see HELMDASH_SPOOL_MAX_BYTES"),
        ("damaged_lines", "see spool/damaged in the data directory"),
    ):
        # What happened long ago is told, and no fault of today.
        is_new = any(getattr(each, name) for each in lately)
        problem = f"calls were lost or put aside lately: {why}" if is_new else ""
        value = str(getattr(total, name))
        yield Finding(subject="recorder", name=name, value=value, problem=problem)


def _upstreams() -> Iterator[Finding]:
    found = {
        (each.name, each.base_url): each
        for project in projects()
        if not project.is_demo
        for each in endpoints(project_id=project.id)
    }
    if not found:
        # No fault: calls may be reported instead. And a server may have been given them where this
        # command was not.
        yield Finding(
            subject="upstream",
            name="none",
            value="in the admin, or in the environment of this command",
        )
    with ThreadPoolExecutor(8) as pool:
        for each, problem in zip(found.values(), pool.map(_reach, found.values()), strict=True):
            value = f"{each.kind.value}, {'with' if each.api_key else 'without'} a key"
            yield Finding(subject="upstream", name=each.name, value=value, problem=problem)


def _reach(endpoint: Endpoint) -> str:
    """Whether calls may go to its host, and it takes a connection that can be trusted; no request
    is sent."""
    refusal = refusal_of(endpoint)
    if refusal:
        return f"cannot be called: {refusal}"
    parts = urlsplit(endpoint.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or ""
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS) as connected:
            if parts.scheme == "https":
                tls_context().wrap_socket(connected, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        return f"cannot be trusted: {error.verify_message}; {_OWN_AUTHORITY}"
    except ssl.SSLError as error:
        return f"answers without TLS, or with none that is known: {error.reason or error}"
    except (OSError, UnicodeError) as error:
        return f"cannot be reached: {getattr(error, 'strerror', None) or error}"
    return ""


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable: GB is the last unit")
