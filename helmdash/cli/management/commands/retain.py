"""`manage.py retain`: delete what is older than each project wants to keep."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.core.access.permissions import SHELL
from helmdash.operations import idempotency
from helmdash.operations.access import sign_in_throttle
from helmdash.operations.database import statistics
from helmdash.operations.database.scrubbing import scrub
from helmdash.operations.retention import expired, expired_texts
from helmdash.queries.access import ProjectInfo, projects


class Command(BaseCommand):
    help = (
        "Delete calls, fits, plans and conversations older than their project's retention_days, "
        "and texts older than its text_days."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only count.")

    def handle(self, *args: Any, **options: Any) -> None:
        verb = "would delete" if options["dry_run"] else "deleted"
        for project in projects():
            if project.text_days is not None:
                self._retain_texts(project, is_dry=options["dry_run"])
            if project.retention_days is None:
                if not options["dry_run"]:
                    expired.forget_pending(project=project, now=timezone.now())
                self.stdout.write(f"{project.slug}: keeps everything")
                continue
            if options["dry_run"]:
                done = expired.count_expired(project=project, now=timezone.now())
            else:
                done = expired.delete_expired(actor=SHELL, project=project, now=timezone.now())
            self.stdout.write(
                f"{project.slug}: {verb} {done.calls} calls, {done.conversations} conversations, "
                f"{done.fits} fits, {done.plans} plans older than {project.retention_days} days"
            )
        if not options["dry_run"]:
            forgotten = expired.forget_answers(now=timezone.now())
            self.stdout.write(f"let go of {forgotten} answers that waited to be fetched")
            kept = idempotency.forget_kept(now=timezone.now())
            tries = sign_in_throttle.clean(now=timezone.now())
            scrub()
            statistics.refresh()
            self.stdout.write(
                f"deleted {kept} answers kept for repeats, {tries} rows about wrong passwords"
            )

    def _retain_texts(self, project: ProjectInfo, *, is_dry: bool) -> None:
        now = timezone.now()
        if is_dry:
            done = expired_texts.count_old_texts(project=project, now=now)
        else:
            done = expired_texts.delete_old_texts(actor=SHELL, project=project, now=now)
        verb = "would delete" if is_dry else "deleted"
        self.stdout.write(
            f"{project.slug}: {verb} the texts of {done.calls} calls, {done.plans} plans, "
            f"{done.fits} fits and {done.messages} messages older than {project.text_days} days"
        )
