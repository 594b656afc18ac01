"""The admin's clock. The admin is a face, and only faces read the clock."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """Aware, in UTC. The one place in the admin that may read the clock."""
    return timezone.now()  # noqa: TID251
