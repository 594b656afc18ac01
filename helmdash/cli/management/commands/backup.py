"""`manage.py backup FILE`: database, secret key and spool in one file, while the server serves."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import psycopg
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.cli.progress import progress_line
from helmdash.operations.backup import make_backup
from helmdash.places import database_problem


class Command(BaseCommand):
    help = (
        "Write database, secret key and spool into one file, which only its owner can read. The "
        "server may go on serving. The file holds the key that opens stored provider keys: keep it "
        "as you keep a password."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="Where to; an older one there is replaced.")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].expanduser().absolute()
        try:
            self._check(path)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}") from None
        try:
            with progress_line() as progress:
                made = make_backup(path, env=conf.env(), now=timezone.now(), progress=progress)
        except OSError as error:
            raise CommandError(f"{path}: no backup was made: {error.strerror or error}") from None
        except (sqlite3.Error, psycopg.Error) as error:
            problem = database_problem(error)
            raise CommandError(f"{path}: no backup was made: {problem}") from None
        size_mb = path.stat().st_size / 1_000_000
        self.stdout.write(
            f"{path}: {made.rows} rows of {len(made.tables)} tables, {size_mb:.1f} MB"
        )

    def _check(self, path: Path) -> None:
        # Not by Path.is_dir() and the like: from Python 3.14 on they say False of what they cannot
        # look at, too.
        place, there = _mode(path.parent), _mode(path)
        if S_ISDIR(there) or not S_ISDIR(place):
            raise CommandError(f"{path}: name a file in a directory that is there")
        if there and not S_ISREG(there):
            # What is put in the place of /dev/null is missed by all of the machine.
            raise CommandError(f"{path} is no file: it would be replaced by the backup")


def _mode(path: Path) -> int:
    """What kind of file is there; 0 for none. Raises OSError where nobody can look."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
