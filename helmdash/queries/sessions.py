"""The sessions of a person, for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef

from helmdash.records.models import SignedIn

# More than anybody looks through.
MOST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """One session: seen_at is exact to five minutes. is_this: the one that asks."""

    id: int
    device: str
    address: str | None
    since: datetime
    seen_at: datetime
    is_this: bool


def sessions_of(*, user_id: int, this: str | None, now: datetime) -> tuple[SessionView, ...]:
    """Sessions that have not ended, the newest use first, 100 at most. One query."""
    alive = Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gte=now)
    rows = SignedIn.objects.filter(Exists(alive), user_id=user_id).order_by("-seen_at", "-id")
    return tuple(
        SessionView(
            id=row.pk,
            device=row.device,
            address=row.address,
            since=row.since,
            seen_at=row.seen_at,
            is_this=row.session_key == this,
        )
        for row in rows[:MOST]
    )
