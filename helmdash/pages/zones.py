"""The zone in which a reader writes and reads times: the one of their account, else the browser's
own, which the script tells in a cookie; UTC without one."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.http import HttpRequest

from helmdash.queries.looks import look_of

ZONE_COOKIE = "helmdash_zone"
CHOSEN_ZONE_COOKIE = "helmdash_own_zone"
# The longest name of the zone database has 32 characters.
_MOST_CHARS = 64
# Far more than people of one server live in.
_KEPT = 64


def reader_zone(request: HttpRequest) -> tzinfo:
    """The reader's zone; UTC where it is not told, or not known to this machine."""
    names = (chosen_zone(request), request.COOKIES.get(ZONE_COOKIE, ""))
    return find_zone(next(filter(None, names), "")) or UTC


def chosen_zone(request: HttpRequest) -> str:
    """The name of the zone that the reader chose; "" for the browser's own. Before accounts kept
    it, browsers did."""
    look = look_of(request.user)
    return request.COOKIES.get(CHOSEN_ZONE_COOKIE, "")[:64] if look is None else look.zone


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
