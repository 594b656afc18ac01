"""`manage.py demo load|remove`: conversations that show every level and cause."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line, told_when_ended
from helmdash.core.access.permissions import SHELL
from helmdash.operations.demo import loading
from helmdash.operations.jobs import asking

_ANEW = "a part may be loaded: `demo load` begins anew"


class Command(BaseCommand):
    help = "Load or remove demo data. It lives in a project of its own and never counts as real."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["load", "remove"])

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._change(options["action"])
        except loading.DemoBusy as error:
            raise CommandError(str(error)) from None

    def _change(self, action: str) -> None:
        if action == "load":
            told: list[str] = []
            with told_when_ended(_ANEW), progress_line() as show:
                is_done = asking.load_demo_now(actor=SHELL, tell=told.append, show=show)
            if not is_done:
                raise loading.DemoBusy
            self.stdout.write(f"The project “Demo”: {told[0] if told else 'cancelled'}.")
            if told:
                self.stdout.write(
                    "See it by “Project” in the side bar, or with ?project=demo behind an address."
                )
            return
        removed = asking.remove_demo(actor=SHELL)
        self.stdout.write("Removed the demo data." if removed else "There is no demo data.")
