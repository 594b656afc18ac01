"""Ids for calls that come without one of their own."""

from __future__ import annotations

import secrets
from datetime import datetime


def new_call_id(now: datetime) -> str:
    """An id that nobody else makes and that sorts by time."""
    return f"call_{int(now.timestamp() * 1000):012x}{secrets.token_hex(8)}"
