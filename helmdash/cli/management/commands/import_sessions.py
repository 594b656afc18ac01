"""`manage.py import_sessions`: calls out of what agents wrote on the server's own machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.cli.running import STOPPED
from helmdash.core.calls.capture import is_too_old
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture
from helmdash.doors.bodies.reports import CallIn
from helmdash.doors.validation import BadFields, Shape, unstorable
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo, default_project, find_project
from helmdash.transcripts.agents import NAMES, readers_of
from helmdash.transcripts.command import GOES_ON, add_arguments, home_of
from helmdash.transcripts.importing import Importer, Stored
from helmdash.transcripts.sent_files import SentFiles
from helmdash.transcripts.telling import ProgressBar, summary_lines

_CALL = Shape(CallIn)
_CALLER = "import_sessions"


class Command(BaseCommand):
    help = (
        "Import the calls that agents on this machine wrote down by themselves "
        f"({', '.join(NAMES)}). Running it again adds what is new."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)
        parser.add_argument("--project", help="Slug of the project. Default: the default project.")

    def handle(self, *args: Any, **options: Any) -> None:
        home: Path | None = options["home"]
        if home is not None and not home.is_dir():
            raise CommandError(f"--home: {home} is no folder")
        names = [name.strip() for name in options["agents"].split(",") if name.strip()]
        try:
            readers = readers_of(names)
        except ValueError as error:
            raise CommandError(f"--from: {error}") from None
        slug = options["project"]
        project = find_project(slug=slug) if slug else default_project()
        if project is None:
            raise CommandError(f"there is no project called {slug}")
        bar = ProgressBar(sys.stderr)
        importer = Importer(
            readers,
            home_of(home),
            send=_Recording(project),
            texts=options["texts"],
            # What is stored is looked up by id: fast enough here to need no memory of its own.
            sent=SentFiles(),
            progress=bar,
        )
        try:
            if options["watch"]:
                self.stderr.write("Watching; Ctrl-C ends it.", self.style.NOTICE)
                importer.watch()
            else:
                importer.run()
        except KeyboardInterrupt:
            if not options["watch"]:
                raise CommandError(f"stopped; {GOES_ON}", returncode=STOPPED) from None
        finally:
            bar.close()
            self.stdout.write("\n".join(summary_lines(importer.summaries)))
        if any(each.rejected for each in importer.summaries.values()):
            raise CommandError("some calls were not taken, see above")


class _Recording:
    """Stores reports of one project, checked as the API checks them."""

    def __init__(self, project: ProjectInfo) -> None:
        self._project = project

    def __call__(self, reports: Sequence[dict[str, Any]]) -> Stored:
        rejected: dict[int, str] = {}
        captures, too_old, now = [], 0, timezone.now()
        kept_since = self._project.kept_since(now)
        for index, report in enumerate(reports):
            try:
                call = _CALL.check(report, whole="call")
                if faults := unstorable(report):
                    raise BadFields(faults)
                capture = to_capture(call, route=CallRoute.TRANSCRIPT)
                if is_too_old(capture, kept_since):
                    too_old += 1
                else:
                    captures.append(capture)
            except BadFields as error:
                rejected[index] = str(error)
        recorded = record_calls(project=self._project, captures=captures, caller=_CALLER, now=now)
        known = sum(each.duplicate for each in recorded)
        return Stored(new=len(recorded) - known, known=known, too_old=too_old, rejected=rejected)
