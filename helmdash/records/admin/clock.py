"""The admin's clock. The admin is a face, and faces read the clock (architecture: `now`)."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """The present moment, in UTC."""
    return timezone.now()  # noqa: TID251
