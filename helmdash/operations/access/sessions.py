"""Sessions of the pages: which there are of a person, and how they end.

When one was used is written at most every five minutes by each process, so that reading pages stays
reading.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef

from helmdash.core.access.devices import device_of
from helmdash.core.access.permissions import Actor
from helmdash.operations.database.transactions import write
from helmdash.records import audit
from helmdash.records.models import SignedIn

_PRECISION: Final = timedelta(minutes=5)
# Far more than use one server at once.
_MOST_KNOWN: Final = 10_000
_known: OrderedDict[str, datetime] = OrderedDict()
_lock = threading.Lock()


def note_seen(
    *, user_id: int, session_key: str, user_agent: str, address: str | None, now: datetime
) -> None:
    """Somebody uses this session. Two queries at most, and none for five minutes."""
    if not _is_news(session_key, now):
        return
    seen = {"device": device_of(user_agent), "address": address, "seen_at": now}

    def work() -> None:
        if not SignedIn.objects.filter(session_key=session_key).update(**seen):
            SignedIn.objects.create(user_id=user_id, session_key=session_key, since=now, **seen)

    write(work)


def end(*, actor: Actor, user_id: int, only: int | None, but: str) -> int:
    """End a session of a person by its number, or (only None) all; never the one with the key
    `but`, in which they ask. How many ended."""

    def work() -> int:
        rows = SignedIn.objects.filter(user_id=user_id).exclude(session_key=but)
        if only is not None:
            rows = rows.filter(pk=only)
        keys = list(rows.values_list("session_key", flat=True))
        Session.objects.filter(session_key__in=keys).delete()
        ended, _ = rows.filter(session_key__in=keys).delete()
        if ended:
            changes = (("sessions", ended, 0),)
            audit.note(
                actor=actor,
                project_id=None,
                kind="account",
                action="signed out",
                subject=str(actor),
                changes=changes,
            )
        return ended

    return write(work)


def forget_ended(*, now: datetime) -> int:
    """Delete sessions that have run out, and what is known of those that are gone; how many."""
    Session.objects.filter(expire_date__lt=now).delete()
    alive = Session.objects.filter(session_key=OuterRef("session_key"))
    return SignedIn.objects.exclude(Exists(alive)).delete()[0]


def _is_news(session_key: str, now: datetime) -> bool:
    with _lock:
        noted = _known.get(session_key)
        if noted is not None and now - noted < _PRECISION:
            return False
        _known[session_key] = now
        _known.move_to_end(session_key)
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return True
