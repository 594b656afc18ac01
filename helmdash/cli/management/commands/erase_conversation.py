"""`manage.py erase_conversation NAME`: a conversation with all that hangs on it, for good."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.core.access.permissions import SHELL
from helmdash.operations.recorder import recovery
from helmdash.operations.retention import erasing
from helmdash.queries.access.access import ProjectInfo, default_project, find_project, projects
from helmdash.queries.conversations import conversations


class Command(BaseCommand):
    help = (
        "Erase a conversation with its calls, texts, fits, plans, reminders and sub-agents, for "
        "good. To do it again changes nothing, and fails: there is none any more."
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
        name = options["name"]
        is_known = _is_known(project, name)
        erased = erasing.erase_conversation(
            actor=SHELL, project=project, conversation=name, now=timezone.now()
        )
        if not is_known and erased == erasing.Erased():
            raise CommandError(
                f"{project.slug}: there is no conversation called {name}, and nothing else has "
                f"this name; nothing is erased{_elsewhere(name)}."
            )
        self.stdout.write(
            f"{project.slug}: erased {erased.calls} calls, {erased.messages} messages, "
            f"{erased.fits} fits and {erased.plans} plans of {name} and "
            f"{erased.sub_agents} sub-agents."
        )


def _is_known(project: ProjectInfo, name: str) -> bool:
    if "\x00" in name:  # nothing can be called so, and no database asked for it
        return False
    return conversations.find(project_id=project.id, conversation_id=name) is not None


def _elsewhere(name: str) -> str:
    """Where there is one, for whoever forgot to say the project."""
    found = [each.slug for each in projects() if _is_known(each, name)]
    return f". One is in {', '.join(found)}: say --project" if found else ""
