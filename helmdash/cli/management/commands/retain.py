"""`manage.py retain`: delete what is older than each project wants to keep."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line, told_when_ended
from helmdash.operations.jobs import kinds
from helmdash.operations.retention import retaining
from helmdash.operations.retention.retaining import MonthsDropped, ProjectRetained, Swept


class Command(BaseCommand):
    help = (
        "Delete calls, fits, plans and conversations older than their project's retention_days, "
        "and texts older than its text_days. A server does it by itself once a day."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only count.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["dry_run"]:
            for each in retaining.count(now=timezone.now()):
                self._tell_project(each, "would delete")
            return
        with told_when_ended("what is deleted so far stays so"), progress_line() as show:
            is_done = kinds.retain_now(self._tell, show)
        if not is_done:
            self.stdout.write(
                "a server, or another command, is at it at this moment; nothing was done here"
            )

    def _tell(self, done: MonthsDropped | ProjectRetained | Swept) -> None:
        if isinstance(done, MonthsDropped):
            for month in done.months:
                self.stdout.write(f"dropped the calls of {month.replace('_', '-')}, all projects'")
            return
        if isinstance(done, ProjectRetained):
            self._tell_project(done, "deleted")
            return
        self.stdout.write(f"let go of {done.answers} answers that waited to be fetched")
        self.stdout.write(
            f"deleted {done.kept} answers kept for repeats, {done.tries} rows about wrong "
            f"passwords, {done.entries} entries of the audit log, "
            f"{done.sessions} sessions that ended, {done.messages} messages of alerts"
        )

    def _tell_project(self, done: ProjectRetained, verb: str) -> None:
        project, texts, rows = done.project, done.texts, done.rows
        if texts is not None:
            self.stdout.write(
                f"{project.slug}: {verb} the texts of {texts.calls} calls, {texts.plans} plans, "
                f"{texts.fits} fits and {texts.messages} messages older than "
                f"{project.text_days} days"
            )
        if rows is None:
            self.stdout.write(f"{project.slug}: keeps everything")
            return
        self.stdout.write(
            f"{project.slug}: {verb} {rows.calls} calls, {rows.conversations} conversations, "
            f"{rows.fits} fits, {rows.plans} plans older than {project.retention_days} days"
        )
