"""`manage.py weekly_report`: the week's report as text, or by mail to who subscribed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.operations import weekly_mail
from helmdash.operations.jobs import kinds
from helmdash.queries.access.access import projects
from helmdash.queries.weekly import weekly_report


class Command(BaseCommand):
    help = (
        "The report of the week that ended on Monday (UTC). A server mails it by itself on Mondays "
        "to who subscribed on the page Week."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--print", action="store_true", help="Write it as text.")
        what.add_argument(
            "--send", action="store_true", help="Mail it to whom it was not sent yet."
        )
        parser.add_argument("--project", default="", help="Slug, for --print. Empty: the default.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["send"]:
            with progress_line() as show:
                is_done = kinds.weekly_now(self.stdout.write, show)
            if not is_done:
                self.stdout.write(
                    "a server, or another command, is at it at this moment; nothing was done here"
                )
            return
        slug = options["project"]
        found = [each for each in projects() if each.slug == slug or (not slug and each.is_default)]
        if not found:
            raise CommandError(f"no project is called {slug!r}")
        until = weekly_mail.week_before(timezone.now())
        report = weekly_report(project_id=found[0].id, until=until)
        self.stdout.write(weekly_mail.as_text(report, slug=found[0].slug, name=found[0].name))
