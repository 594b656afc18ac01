"""`manage.py rebuild_rollups`: count all calls anew for the figures of the pages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.core.access.permissions import SHELL
from helmdash.core.rollups.periods import moment_of
from helmdash.operations.rollups import rebuilding
from helmdash.operations.rollups.rebuilding import Rebuilt
from helmdash.queries.access import find_project, projects


class Command(BaseCommand):
    help = (
        "Count all calls anew for the figures of the pages, the newest first, while others record. "
        "Broken off, it goes on where it was. After an upgrade a server does so by itself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", help="Slug of the project. Default: every project.")
        parser.add_argument(
            "--anew", action="store_true", help="Begin with the newest call, wherever it was."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["project"]
        one = find_project(slug=slug) if slug else None
        if slug and one is None:
            raise CommandError(f"--project: there is no project called {slug}")
        for project in [one] if one is not None else projects():
            with progress_line() as show:

                def tell(done: Rebuilt, name: str = project.slug) -> None:
                    reached = moment_of(done.down_to or 0)
                    show(f"{name}: back to {reached:%Y-%m-%d %H:%M}, {done.calls} calls")

                done = rebuilding.rebuild(
                    actor=SHELL, project_id=project.id, progress=tell, anew=options["anew"]
                )
            self.stdout.write(
                f"{project.slug}: counted {done.calls} calls; {done.wrong} figures were not as "
                "they are now"
            )
