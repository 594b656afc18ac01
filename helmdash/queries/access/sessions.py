"""The sessions of a person, for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.auth import HASH_SESSION_KEY
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
    """Sessions that have not ended, the newest use first, 100 at most. Two queries."""
    alive = Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gte=now)
    found = SignedIn.objects.filter(Exists(alive), user_id=user_id).select_related("user")
    rows = list(found.order_by("-seen_at", "-id")[:MOST])
    keys = [row.session_key for row in rows]
    # A new password ends sessions at their next use, and leaves their rows until then.
    hashes = {
        each.session_key: each.get_decoded().get(HASH_SESSION_KEY)
        for each in Session.objects.filter(session_key__in=keys)
    }
    return tuple(
        SessionView(
            id=row.pk,
            device=row.device,
            address=row.address,
            since=row.since,
            seen_at=row.seen_at,
            is_this=row.session_key == this,
        )
        for row in rows
        if hashes.get(row.session_key) == row.user.get_session_auth_hash()
    )
