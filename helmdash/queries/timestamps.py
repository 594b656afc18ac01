"""Moments as JSON says them, for the projections that are JSON already when they leave here."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(at: datetime) -> str:
    """RFC 3339 in UTC, as every answer of the API has it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
