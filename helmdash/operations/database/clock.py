"""The database's clock, the one that all hosts have in common.

Until when something holds is noted by one host and looked at by another, whose own clock may be
minutes ahead or behind: both have to go by this one.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from django.db import connection

# A process's own seconds are as long as the database's: nobody has to ask for each request.
_ASK_EVERY_S = 60.0
# What it said last, and when by this process's monotonic clock.
_asked: tuple[datetime, float] | None = None


def clock() -> datetime:
    """What it says at this moment. One query."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT statement_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now
        cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0])


def shared_now() -> datetime:
    """The same to within a few milliseconds. A query once a minute."""
    global _asked
    if _asked is None or time.monotonic() - _asked[1] > _ASK_EVERY_S:
        _asked = clock(), time.monotonic()
    return _since(_asked)


def reckoned() -> datetime | None:
    """The same without the database; None where this process has not asked it yet."""
    return None if _asked is None else _since(_asked)


def forget() -> None:
    """Ask anew: for tests, whose databases come and go."""
    global _asked
    _asked = None


def _since(asked: tuple[datetime, float]) -> datetime:
    at, moment = asked
    return at + timedelta(seconds=time.monotonic() - moment)
