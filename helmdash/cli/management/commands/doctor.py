"""`manage.py doctor`: what a maintainer needs to know, without secrets and texts."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.cli.examining import examine


class Command(BaseCommand):
    help = (
        "Say how this HelmDash stands: versions, settings, disk, database, recorder, upstreams, "
        "recent faults. No secret and no text is printed. Ends with 1 when something is wrong."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON object, for programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = list(examine(now=timezone.now()))
        problems = [each for each in found if each.problem]
        if options["json"]:
            told = {"ok": not problems, "findings": [asdict(each) for each in found]}
            self.stdout.write(json.dumps(told, indent=1))
        else:
            width = max(len(f"{each.subject} {each.name}") for each in found)
            for each in found:
                line = f"{f'{each.subject} {each.name}':{width}}  {each.value}"
                self.stdout.write(f"{line}   <- {each.problem}" if each.problem else line)
            self.stdout.write(
                f"{len(problems)} problem{'s' * (len(problems) != 1)}." if problems else "All well."
            )
        if problems:
            sys.exit(1)
