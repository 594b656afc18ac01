"""`manage.py erase_conversation NAME`: a conversation with all that hangs on it, for good."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.core.access.permissions import SHELL
from helmdash.operations.recorder import recovery
from helmdash.operations.retention import erasing
from helmdash.queries.access.access import default_project, find_project


class Command(BaseCommand):
    help = (
        "Erase a conversation with its calls, texts, fits, plans, reminders and sub-agents, for "
        "good. "
        "To do it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="The id that its calls carry.")
        parser.add_argument("--project", help="Slug of the project. Default: the default project.")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["project"]
        project = find_project(slug=slug) if slug else default_project()
        if project is None:
            raise CommandError(f"--project: there is no project called {slug}")
        # Calls that a server which has ended left in the spool would come back with the next one.
        recovery.store()
        erased = erasing.erase_conversation(
            actor=SHELL, project=project, conversation=options["name"], now=timezone.now()
        )
        self.stdout.write(
            f"{project.slug}: erased {erased.calls} calls, {erased.messages} messages, "
            f"{erased.fits} fits and {erased.plans} plans of {options['name']} and "
            f"{erased.sub_agents} sub-agents."
        )
