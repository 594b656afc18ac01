"""`manage.py restore FILE`: put a backup here. The server must not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.installation import COMMAND
from helmdash.operations.backup import ArchiveProblem, RestoreProblem, restore


class Command(BaseCommand):
    help = (
        "Put the database, secret key and spool of a backup here. The server must be stopped. "
        "Afterwards `up` brings an older release's tables here, and stores what waits in the spool."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--force", action="store_true", help="Replace the data that is here; it is then gone."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].expanduser().absolute()
        try:
            with progress_line() as progress:
                found = restore(path, env=conf.env(), force=options["force"], progress=progress)
        except ArchiveProblem as error:
            raise CommandError(f"{path} cannot be restored: {error}") from None
        except RestoreProblem as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            where = error.filename or path
            raise CommandError(f"{where}: {error.strerror or error}") from None
        self.stdout.write(
            f"Restored {found.rows} rows of {len(found.tables)} tables, as of {found.made_at}. "
            f"Start the server with `{COMMAND} up`.\n"
            "Keys that were revoked since then, and people who were removed, may enter again: look "
            "at Settings, Keys and Members."
        )
