"""`manage.py migrate`: Django's, which a new database need not go through step by step."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS

from helmdash.operations.database.fresh import make_tables

# Asked for, they are about single steps.
_OF_STEPS = ("app_label", "plan", "check_unapplied", "fake", "fake_initial", "prune")


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        plain = not any(options[name] for name in _OF_STEPS)
        if plain and options["database"] == DEFAULT_DB_ALIAS and make_tables():
            self._say_made(options["verbosity"])
        super().handle(*args, **options)

    def _say_made(self, verbosity: int) -> None:
        if verbosity:
            self.stdout.write("The database was empty: all tables have been made at once.")
