"""What a maintainer asks of a database: kind, size, migrations, counts, recent faults. No texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Count, Q

from helmdash.records.models import ApiKey, Call, Conversation, Project, RecorderLedger

RECENTLY = timedelta(hours=24)
# Counting stops here: more is "or more".
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
    """What it holds. running: names of processes that recorded lately; silent: that stopped so."""

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
    """A dozen queries, each bounded by an index or by MOST_COUNTED."""
    recent = Call.objects.filter(started_at__gte=now - RECENTLY, started_at__lte=now)
    causes = recent.exclude(cause="").values_list("cause").annotate(n=Count("id"))
    open_rows = RecorderLedger.objects.filter(stopped_at__isnull=True)
    return RowFacts(
        projects=Project.objects.count(),
        keys=ApiKey.objects.filter(_valid(now), revoked_at__isnull=True).count(),
        people=get_user_model().objects.filter(is_active=True).count(),
        calls=Call.objects.values("id")[:MOST_COUNTED].count(),
        conversations=Conversation.objects.values("id")[:MOST_COUNTED].count(),
        latest_call_at=_latest(),
        recent_calls=recent.count(),
        recent_causes=tuple(causes.order_by("-n", "cause")[:_MOST_CAUSES]),
        running=open_rows.filter(seen_at__gte=now - _SILENT).count(),
        silent=open_rows.filter(seen_at__lt=now - _SILENT).count(),
    )


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
