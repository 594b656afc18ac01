"""What a maintainer asks of a database: kind, size, migrations, counts, recent faults. No texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q, QuerySet

from helmdash.core.rollups.figures import (
    CALLS,
    Counts,
    Marginal,
    add,
    under,
)
from helmdash.queries import rollups
from helmdash.records.models import ApiKey, Call, Conversation, Project, RecorderLedger

RECENTLY = timedelta(hours=24)
# Counting rows stops here: more is "or more".
MOST_COUNTED = 1_000_000
_MOST_CAUSES = 5
# A process that lives writes to its row at least once a minute.
_SILENT = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """The database itself. size_bytes: None where it does not say. modes: settings by name."""

    kind: str
    version: str
    size_bytes: int | None
    modes: dict[str, str]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    clock: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """What it holds. running: names of processes that recorded lately; silent: that stopped so.

    bounded: the names of those that were counted no further than MOST_COUNTED, and are more.
    """

    projects: int
    keys: int
    people: int
    calls: int
    conversations: int
    latest_call_at: datetime | None
    recent_calls: int
    recent_causes: tuple[tuple[str, int], ...]
    running: int
    silent: int
    bounded: frozenset[str]


def database_facts() -> DatabaseFacts:
    """Raises what the database raises when it is unavailable."""
    loader = MigrationLoader(connection)
    applied, known = set(loader.applied_migrations), set(loader.disk_migrations or {})
    is_postgres = connection.vendor == "postgresql"
    return DatabaseFacts(
        kind="PostgreSQL" if is_postgres else "SQLite",
        version=str(_one("SHOW server_version" if is_postgres else "SELECT sqlite_version()")),
        size_bytes=_size(is_postgres=is_postgres),
        modes=_modes(is_postgres=is_postgres),
        missing=_names(known - applied),
        unknown=_names(applied - known),
        clock=_one("SELECT clock_timestamp()") if is_postgres else None,
    )


def row_facts(*, now: datetime) -> RowFacts:
    """Seven queries and at most seven for each project, none of which reads many rows.

    Calls are told from rollups; where these do not reach back to the first call yet, from
    MOST_COUNTED rows at most.
    """
    projects = list(Project.objects.values_list("id", flat=True))
    held = [rollups.held_calls(project_id=each) for each in projects]
    counted = {"conversations": _bounded(Conversation.objects.all())}
    calls = sum(each or 0 for each in held)
    if None in held:
        calls = counted["calls"] = _bounded(Call.objects.all())
    recent = _recent(projects, now)
    causes = Counter(under(recent, "c"))
    open_rows = RecorderLedger.objects.filter(stopped_at__isnull=True)
    return RowFacts(
        projects=len(projects),
        keys=ApiKey.objects.filter(_valid(now), revoked_at__isnull=True).count(),
        people=get_user_model().objects.filter(is_active=True).count(),
        calls=calls,
        conversations=counted["conversations"],
        latest_call_at=_latest(),
        recent_calls=recent.get(CALLS, 0),
        recent_causes=tuple(
            sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_CAUSES]
        ),
        running=open_rows.filter(seen_at__gte=now - _SILENT).count(),
        silent=open_rows.filter(seen_at__lt=now - _SILENT).count(),
        bounded=frozenset(name for name, rows in counted.items() if rows >= MOST_COUNTED),
    )


def _recent(projects: Iterable[int], now: datetime) -> Counts:
    """The figures of the last day, of all projects. Calls of a project whose rollups do not reach
    back for a day yet are left out."""
    figures: Counts = {}
    for project_id in projects:
        found = rollups.figures(
            project_id=project_id, marginal=Marginal.ALL, since=now - RECENTLY, until=None
        )
        for told in found.totals().values() if found else ():
            add(figures, told)
    return figures


def _bounded(rows: QuerySet[Any]) -> int:
    return rows.order_by().values("id")[:MOST_COUNTED].count()


def _valid(now: datetime) -> Q:
    return Q(expires_at__isnull=True) | Q(expires_at__gt=now)


def _latest() -> datetime | None:
    newest = Call.objects.order_by("-id").values_list("recorded_at", flat=True)
    return newest.first()


def _size(*, is_postgres: bool) -> int | None:
    if is_postgres:
        return int(_one("SELECT pg_database_size(current_database())"))
    return int(_one("PRAGMA page_count")) * int(_one("PRAGMA page_size"))


def _modes(*, is_postgres: bool) -> dict[str, str]:
    if is_postgres:
        names = ("synchronous_commit", "max_connections", "server_encoding", "TimeZone")
        return {name: str(_one(f"SHOW {name}")) for name in names}
    return {name: str(_one(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous")}


def _names(found: set[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(sorted(f"{app}.{name}" for app, name in found))


def _one(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
        return row[0] if row else None
