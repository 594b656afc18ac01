"""How a prompt would stand with another model, in words."""

from __future__ import annotations

from typing import Final

from helmdash.core.budgets.preflight import Room

ROOM_WORDS: Final = {
    Room.FITS: "fits",
    Room.CAUTION: "caution there",
    Room.CRITICAL: "critical there",
    Room.TOO_LONG: "too long",
    Room.UNKNOWN: "unknown",
}
