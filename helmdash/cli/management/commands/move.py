"""`manage.py move --to postgres://…`: from the SQLite file to PostgreSQL."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connections

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.installation import COMMAND
from helmdash.operations.moving import MoveProblem, move


class Command(BaseCommand):
    help = (
        "Bring all rows of the SQLite file into an empty PostgreSQL database. The server must be "
        "stopped. The file is only read. What was interrupted goes on when the command is run "
        "again. The secret key and the spool stay where they are, in the data directory."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to",
            required=True,
            metavar="URL",
            help="postgres://user@host:port/name of an empty database. PGPASSWORD may hold the "
            "password, so that no list of processes shows it.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        url: str = options["to"].strip()
        problem = conf.database_url_problem(url)
        if problem is None and not url.startswith("postgres"):
            problem = "must start with postgres://"
        if problem:
            raise CommandError(f"--to {conf.masked(url)}: {problem}")
        # Our own looks at the file are over: the move holds it alone.
        connections.close_all()
        try:
            with progress_line() as progress:
                moved = move(url, env=conf.env(), progress=progress)
        except MoveProblem as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError("stopped; the same command goes on where it was") from None
        for table, rows in sorted(moved.rows.items()):
            if rows:
                self.stdout.write(f"{rows:>12,}  {table}")
        before = f", {moved.resumed:,} of them from a try before" if moved.resumed else ""
        self.stdout.write(
            f"Moved {sum(moved.rows.values()):,} rows{before}; every table has as many as the "
            f"file. Start with DATABASE_URL={conf.masked(url)} and the same HELMDASH_DATA_DIR, "
            f"where the secret key and waiting calls are: `{COMMAND} up`. The SQLite file is as it "
            "was, and no longer needed."
        )
