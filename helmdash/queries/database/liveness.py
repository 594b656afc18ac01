"""Whether the database is there."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError

from helmdash.installation import COMMAND
from helmdash.records.models import Project


def database_problem() -> str | None:
    """None when the database answers and is set up; else what is wrong, in a few words."""
    try:
        is_set_up = Project.objects.filter(is_default=True).exists()
    except (DatabaseError, InterfaceError):
        # The exact error may name hosts and users; it belongs into the log, not on a public page.
        return "the database does not respond or has no tables yet"
    return None if is_set_up else f"no default project yet: run `{COMMAND} up`"
