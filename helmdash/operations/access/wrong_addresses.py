"""Requests that were turned away: counted, so that a person can mend the client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from helmdash.core.access.wrong_addresses import KnockReason
from helmdash.operations.database.transactions import write
from helmdash.records.models.doors import Knock

# As many as somebody reads; a scanner's thousand paths push each other out.
MOST_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Knocked:
    """So many requests of one client for one address, since the last time they were stored.

    reason: one of KnockReason's words.
    """

    method: str
    path: str
    client: str
    advice: str
    count: int
    first_at: datetime
    latest_at: datetime
    reason: str = KnockReason.ADDRESS.value


def store(*, knocks: Iterable[Knocked]) -> None:
    """Add them to what all processes have counted, in one transaction; the oldest rows go."""
    found = sorted(knocks, key=lambda each: (each.method, each.path, each.client))

    def add() -> None:
        for each in found:
            _add(each)
        kept = Knock.objects.order_by("-latest_at", "-id").values_list("pk", flat=True)[:MOST_ROWS]
        if Knock.objects.count() > MOST_ROWS:
            Knock.objects.exclude(pk__in=list(kept)).delete()

    write(add)


def _add(each: Knocked) -> None:
    changed = Knock.objects.filter(method=each.method, path=each.path, client=each.client).update(
        count=F("count") + each.count,
        latest_at=each.latest_at,
        advice=each.advice,
        reason=each.reason,
    )
    if not changed:
        Knock.objects.create(
            method=each.method,
            path=each.path,
            client=each.client,
            advice=each.advice,
            count=each.count,
            first_at=each.first_at,
            latest_at=each.latest_at,
            reason=each.reason,
        )
