"""Clients that asked for addresses that are not there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


def latest(*, limit: int = 50) -> tuple[KnockInfo, ...]:
    """The newest first. One query."""
    return tuple(
        KnockInfo(
            method=row.method,
            path=row.path,
            client=row.client,
            count=row.count,
            advice=row.advice,
            latest_at=row.latest_at,
        )
        for row in Knock.objects.order_by("-latest_at", "-id")[:limit]
    )
