"""`manage.py generate --calls N`: a project full of made-up calls, to try out and to measure."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.core.access.permissions import SHELL
from helmdash.operations.demo import generating


class Command(BaseCommand):
    help = "Record made-up calls of the last 30 days into a project of their own."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--calls", type=int, required=True, help="How many calls.")
        parser.add_argument(
            "--conversations",
            type=int,
            help=f"Default: one for each {generating.CALLS_PER_CONVERSATION} calls.",
        )
        parser.add_argument(
            "--project",
            default=generating.GENERATED_SLUG,
            help="Slug of the project; made if it is missing.",
        )
        parser.add_argument("--seed", type=int, default=1, help="The same seed, the same calls.")
        parser.add_argument(
            "--force", action="store_true", help="Add to a project that has calls already."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("calls", "conversations"):
            if options[name] is not None and options[name] < 1:
                raise CommandError(f"--{name} must be at least 1")
        began = time.monotonic()
        try:
            with progress_line() as show:
                wanted = options["calls"]
                done = generating.generate_calls(
                    actor=SHELL,
                    calls=wanted,
                    conversations=options["conversations"],
                    slug=options["project"],
                    seed=options["seed"],
                    force=options["force"],
                    now=timezone.now(),
                    progress=self._progress
                    if options["verbosity"] > 1
                    else lambda stored: show(f"{stored:,} of {wanted:,} calls"),
                )
        except generating.GenerateError as error:
            raise CommandError(str(error)) from None
        seconds = time.monotonic() - began
        self.stdout.write(
            f"Recorded {done.calls} calls in {done.conversations} conversations into the project "
            f"“{done.project.slug}”, in {seconds:.0f} s."
        )

    def _progress(self, stored: int) -> None:
        self.stdout.write(f"{stored} stored")
