"""Django's migrations, told where they take long: millions of calls are converted for minutes, and
a terminal that says nothing meanwhile looks like one that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.apps import apps
from django.core.management.commands import migrate
from django.db.migrations import Migration

# Sooner nobody wonders; a first start has all steps behind it by then.
_LONG_SECONDS: Final = 3.0
_OWN: Final = "records"


class MigrateCommand(migrate.Command):
    """`migrate`, which says each step that takes long, and the end where one did.

    say: hears a line; also on a thread of its own.
    """

    def __init__(self, say: Callable[[str], None], *, after: float = _LONG_SECONDS) -> None:
        super().__init__()
        self._say, self._after = say, after
        self._has_said = False
        self._timer: threading.Timer | None = None

    def handle(self, *args: Any, **options: Any) -> None:
        """As Django's."""
        try:
            super().handle(*args, **options)
        finally:
            self._be_quiet()
        if self._has_said:
            self._say("The tables are up to date.")

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Called by Django before and after each step."""
        self._be_quiet()
        if action == "apply_start" and migration is not None:
            self._timer = threading.Timer(self._after, self._tell, [migration])
            self._timer.daemon = True
            self._timer.start()

    def _tell(self, migration: Migration) -> None:
        self._has_said = True
        step = migration.name
        if migration.app_label == _OWN:
            step = f"step {int(step[:4])} of {_count_steps()} ({step})"
        self._say(f"Bringing the tables up to date: {step} …")

    def _be_quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _count_steps() -> int:
    folder = Path(apps.get_app_config(_OWN).path) / "migrations"
    return max(int(path.name[:4]) for path in folder.glob("[0-9]*.py"))
