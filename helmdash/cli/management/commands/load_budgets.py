"""`manage.py load_budgets`: the shipped budgets, without undoing anybody's edit."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from helmdash.cli.base import BaseCommand
from helmdash.operations.budgets import shipped


class Command(BaseCommand):
    help = "Add shipped budgets that are missing. --update also resets edited ones, after a diff."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--update", action="store_true", help="Show how stored rows differ, then reset them."
        )
        parser.add_argument(
            "--yes", action="store_true", help="With --update: reset without asking."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        update = False
        if options["update"]:
            differences = shipped.compare_budgets()
            self._show(differences)
            update = bool(differences) and (options["yes"] or self._confirm())
        loaded = shipped.load_budgets(update=update)
        self.stdout.write(
            f"Added {len(loaded.added)} budgets and {len(loaded.aliases_added)} aliases."
        )
        if loaded.left_deleted:
            self.stdout.write(f"Left deleted: {', '.join(loaded.left_deleted)}.")
        if update:
            self.stdout.write("Reset the rows above to the shipped values.")
        elif loaded.differences:
            rows = len({difference.key for difference in loaded.differences})
            self.stdout.write(f"Left {rows} edited rows as they are (see --update).")

    def _show(self, differences: tuple[shipped.Difference, ...]) -> None:
        if not differences:
            self.stdout.write("Every stored row is as shipped.")
        for item in differences:
            key = item.key or "(fallback)"
            self.stdout.write(f"{key}: {item.field} {item.stored!r} -> {item.shipped!r}")

    def _confirm(self) -> bool:
        if not sys.stdin or not sys.stdin.isatty():
            self.stdout.write("Nothing reset: run again with --yes to do it.")
            return False
        return input("Reset these rows? [y/N] ").strip().lower() == "y"
