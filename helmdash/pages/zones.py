"""The zone in which a reader writes and reads times: the one of their profile, else the browser's
own, which the script tells in a cookie; UTC without one."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.http import HttpRequest

ZONE_COOKIE = "helmdash_zone"
CHOSEN_ZONE_COOKIE = "helmdash_own_zone"
# The longest name of the zone database has 32 characters.
_MOST_CHARS = 64
# Far more than people of one server live in.
_KEPT = 64


def reader_zone(request: HttpRequest) -> tzinfo:
    """The reader's zone; UTC where it is not told, or not known to this machine."""
    names = (request.COOKIES.get(each, "") for each in (CHOSEN_ZONE_COOKIE, ZONE_COOKIE))
    return find_zone(next(filter(None, names), "")) or UTC


def find_zone(name: str) -> tzinfo | None:
    """The zone of this name, such as Europe/Berlin; None where this machine knows none."""
    return _zone(name) if 0 < len(name) <= _MOST_CHARS else None


@lru_cache(_KEPT)
def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    # No such zone, no name of one, or a folder of them.
    except (LookupError, ValueError, OSError):
        return None
