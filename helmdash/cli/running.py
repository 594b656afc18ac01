"""Running a command: what is wrong with the place or the settings is one line, not a traceback.

Before a command starts, the settings, the data directory, the database and the release of its
tables are looked at (helmdash.places). What breaks later, such as a disk that fills up, is told in
the same way, with the name of the command, and what became of its work where the command has put
that into the error's notes. `--traceback` shows where.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from helmdash import __version__, conf, places
from helmdash.installation import COMMAND

# Need no database, or say themselves what is wrong with it.
_WITHOUT_DATABASE = frozenset(
    {
        "", "--help", "-h", "help", "settings_help", "check", "doctor",
        "ollama_smoke",
        "collectstatic", "findstatic", "makemigrations", "compilemessages", "makemessages",
        "diffsettings", "startapp", "startproject", "test", "testserver", "sendtestemail",
    }
)  # fmt: skip
# Bring the tables here, or put them there.
_BRINGS_TABLES = frozenset({"up", "migrate", "restore", "showmigrations", "sqlmigrate", "dbshell"})
# What brings data to another place is wanted most where this one is full.
_TAKES_AWAY = frozenset({"backup", "move"})
# The only one that brings a secret key along.
_BRINGS_KEY = "restore"
_SERVES = frozenset({"up", ""})
# As shells tell a process that Ctrl-C ended.
STOPPED = 130


def run(argv: Sequence[str]) -> int:
    """Run a command; gives its exit status. Says what is wrong on stderr."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helmdash.settings")
    if os.environ.get("NO_COLOR"):  # what programs agree on, and Django does not know
        os.environ.setdefault("DJANGO_COLORS", "nocolor")
    command = argv[1] if len(argv) > 1 else ""
    if command in ("version", "--version"):
        sys.stdout.write(f"{__version__}\n")
        return 0
    try:
        look_around(command, argv[2:])
    except conf.BadSetting as error:
        return _fail(_named(command, "cannot run", str(error)))
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(list(argv))
    except BrokenPipeError:
        # Whoever read what was printed has seen enough (`| head`); nor may the exit flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        if "--traceback" in argv:
            raise
        sys.stderr.write("Stopped.\n")
        return STOPPED
    except EOFError:
        if "--traceback" in argv:
            raise
        sys.stderr.write("\nNothing was done: this command asks, and nobody can answer here.\n")
        return 1
    except Exception as error:
        line = None if "--traceback" in argv else told(error)
        if line is None:
            raise
        became = "; ".join(getattr(error, "__notes__", ()))
        return _fail(_named(command, "failed", f"{line}; {became}" if became else line))
    return 0


def main() -> int:
    """The command `helmdash` of an installed HelmDash; gives its exit status."""
    return run(sys.argv)


def look_around(command: str, rest: Sequence[str] = ()) -> None:
    """Check what the command, with the rest of its line, stands on. Raises BadSetting."""
    env = conf.env()
    for line in (*conf.unknown_variables(), *conf.idle_variables(env)):
        sys.stderr.write(f"Warning: {line}.\n")
    needs_database = command not in _WITHOUT_DATABASE and not {"--help", "-h"} & set(rest)
    full: str | None = None
    if needs_database:
        full = places.check_directory(env, needs_room=command not in _TAKES_AWAY)
    if command == _BRINGS_KEY:
        conf.keep_no_new_key()
    conf.secret_key(env)
    if needs_database:
        brings = command in _BRINGS_TABLES
        try:
            schema = places.look_at_schema(env, to_write=brings)
        except conf.BadSetting:
            if full is None:
                raise
            # A file that no server has open wants another one beside it, also for reading.
            raise conf.BadSetting(f"{full}; a server that runs on it makes it readable") from None
        places.check_schema(schema, env, brings=brings)


def told(error: BaseException) -> str | None:
    """One line for a fault of the place; None for a fault of ours, which wants its traceback."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import Error as DatabaseFault
    from django.db import ProgrammingError

    from helmdash.core.budgets.budget_table import MissingFallback

    env = conf.env()
    match error:
        case MissingFallback():
            return f"HelmDash cannot go on: {error}. `manage.py load_budgets` puts it there."
        case conf.BadSetting() | ImproperlyConfigured():
            return str(error)
        case ProgrammingError() if not _is_of_the_place(error):
            return None
        case DatabaseFault():
            return f"{places.database_words(env)}: {places.database_problem(error)}"
        case OSError() if _is_below(error, str(env.data_dir)):
            problem = places.directory_problem(error)
            return f"HELMDASH_DATA_DIR={env.data_dir}: {error.filename}: {problem}"
        case OSError() if error.filename is None and error.errno in places.FULL:
            # Of a file that is open already Python does not say which it is.
            problem = places.directory_problem(error)
            return f"HELMDASH_DATA_DIR={env.data_dir}, or where else was written to: {problem}"
        case _:
            return None


def _is_of_the_place(error: BaseException) -> bool:
    """Tables or columns that are missing, or there already, no schema, no privilege: not of our
    statement's making."""
    return getattr(error.__cause__, "sqlstate", None) in {
        "42P01",
        "42703",
        "42P07",
        "3F000",
        "42501",
    }


def _is_below(error: OSError, directory: str) -> bool:
    return isinstance(error.filename, str) and error.filename.startswith(directory)


def _named(command: str, failure: str, line: str) -> str:
    """The line behind whose failure it is: the server's, or that of one command beside it."""
    if line.startswith("HelmDash"):
        return line
    if command in _SERVES:
        return f"HelmDash cannot start: {line}"
    return f"`{COMMAND} {command}` {failure}: {line}"


def _fail(line: str) -> int:
    sys.stderr.write(" ".join(line.split()) + "\n")
    return 1
