"""`manage.py rebuild_rollups`: count all calls anew for the figures of the pages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line, told_when_ended
from helmdash.operations.jobs import kinds
from helmdash.operations.rollups.rebuilding import Rebuilt
from helmdash.queries.access.access import ProjectInfo, find_project


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
        if slug and find_project(slug=slug) is None:
            raise CommandError(f"--project: there is no project called {slug}")
        with told_when_ended("the same command goes on where it was"), progress_line() as show:
            is_done = kinds.rebuild_now(
                [slug] if slug else [], self._tell, show, anew=options["anew"]
            )
        if not is_done:
            self.stdout.write(
                "a server, or another command, is at it at this moment; nothing was done here"
            )

    def _tell(self, project: ProjectInfo, done: Rebuilt) -> None:
        self.stdout.write(
            f"{project.slug}: counted {done.calls} calls; {done.wrong} figures were not as "
            "they are now"
        )
