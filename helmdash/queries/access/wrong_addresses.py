"""Clients that were turned away: for an address that is not there, or for their key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from helmdash.core.access.wrong_addresses import KnockReason
from helmdash.records.models.doors import Knock


@dataclass(frozen=True, slots=True, kw_only=True)
class KnockInfo:
    """How often one client asked for one address, of all processes, and what it was told."""

    method: str
    path: str
    client: str
    """"": its user agent told nothing."""
    count: int
    advice: str
    latest_at: datetime
    is_key: bool = False
    """The address is right, and the key was refused."""


def latest(*, limit: int = 50) -> tuple[KnockInfo, ...]:
    """Those for an address that is not there, the newest first. One query."""
    rows = Knock.objects.filter(reason=KnockReason.ADDRESS).order_by("-latest_at", "-id")
    return tuple(_info(row) for row in rows[:limit])


def turned_away(*, clients: Iterable[str], since: datetime) -> tuple[KnockInfo, ...]:
    """Those of some clients since a moment, for whatever reason, the newest first. One query.

    clients: names without a version (core.conversations.clients).
    """
    of_client = Q()
    for name in clients:
        of_client |= Q(client=name) | Q(client__startswith=f"{name} ")
    rows = Knock.objects.filter(of_client, latest_at__gte=since)
    return tuple(_info(row) for row in rows.order_by("-latest_at", "-id"))


def _info(row: Knock) -> KnockInfo:
    return KnockInfo(
        method=row.method,
        path=row.path,
        client=row.client,
        count=row.count,
        advice=row.advice,
        latest_at=row.latest_at,
        is_key=row.reason == KnockReason.KEY,
    )
