"""What fires now, and what became of messages: for the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from helmdash.records.models import Alert, AlertDelivery

# A page of what is newest; the admin has all of it.
_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringAlert:
    """An alert that fires. acknowledged_by: who sees to it, None: nobody."""

    title: str
    detail: str
    severity: str
    path: str
    rule: str
    opened_at: datetime
    acknowledged_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryInfo:
    """A message on its way to a channel. state: waiting, sent or failed; told: why it failed, or
    whom a mail that was sent did not reach."""

    headline: str
    key: str
    channel: str
    state: str
    attempts: int
    http_status: int | None
    told: str
    created_at: datetime
    ended_at: datetime | None


def firing(*, project_id: int) -> tuple[FiringAlert, ...]:
    """The alerts of a project that fire, the newest first, fifty at most; none of rules that are
    off, for nobody looks whether these go on. One query."""
    rows = Alert.objects.filter(project_id=project_id, rule__enabled=True, resolved_at__isnull=True)
    return tuple(
        FiringAlert(
            title=row.title,
            detail=row.detail,
            severity=row.severity,
            path=row.path,
            rule=row.rule.name,
            opened_at=row.opened_at,
            acknowledged_by=row.acknowledged_by,
        )
        for row in rows.select_related("rule").order_by("-changed_at", "-id")[:_SHOWN]
    )


def deliveries(*, project_id: int) -> tuple[DeliveryInfo, ...]:
    """The newest deliveries of a project, fifty at most. One query."""
    rows = AlertDelivery.objects.filter(project_id=project_id)
    return tuple(
        DeliveryInfo(
            headline=row.message.headline,
            key=row.message.key,
            channel=row.channel.name,
            state=row.state,
            attempts=row.attempts,
            http_status=row.http_status,
            told=row.told,
            created_at=row.created_at,
            ended_at=row.ended_at,
        )
        for row in rows.select_related("message", "channel").order_by("-id")[:_SHOWN]
    )
