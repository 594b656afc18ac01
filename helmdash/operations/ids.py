"""Ids for rows that come without one of their own."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Literal


def new_id(kind: Literal["call", "fit", "plan", "whatif"], now: datetime) -> str:
    """An id that nobody else makes, and that sorts by time to the millisecond."""
    return f"{kind}_{int(now.timestamp() * 1000):012x}{secrets.token_hex(8)}"
