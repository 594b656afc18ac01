"""What every database and every server of a run begins with, made once.

Empty tables: thirty migrations take 4 s of CPU, more than all else `manage.py up` does at a first
start. And for servers what a first start leaves: the project, budgets, the demo catalog, an admin
whose password takes 0.3 s to hash, a key, collected static files. So that a server of a test starts
as one does that is started again; first starts have their own tests (tests/server).

The run's directory is shared by all its workers: one of them makes the template.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support import ROOT
from tests.support.postgres import create_database
from tests.support.processes import run_python

_SECONDS = 300
_MIGRATE = (
    "import django; django.setup(); from django.core.management import call_command; "
    "call_command('migrate', interactive=False, verbosity=0); "
    # The months that most tests tell of, which each would make for itself.
    "from helmdash.records.statements import partitions; from tests.factories import NOW; "
    "from datetime import timedelta; "
    "partitions.provide(NOW + timedelta(days=30 * n) for n in (-3, -2, -1, 0, 1))"
)
# The names of PostgreSQL's template databases.
SERVED_DATABASE = "served_template"
_TABLES = "tables_template"
# In the template's directory, which is its owner's alone: the variables that name key and password.
_SECRETS = "secrets.json"


def copy_template(
    data_dir: Path, run_directory: Path, environment: dict[str, str], server_url: str = ""
) -> dict[str, str]:
    """Put what a first start has left into an empty `data_dir`; gives its secrets by variable.

    server_url: of the PostgreSQL server that has its database, SERVED_DATABASE, from now on; else
    it is in the directory, with SQLite.
    """
    made = _served_template(run_directory, environment, server_url)
    ignored = shutil.ignore_patterns(_SECRETS, "static")
    shutil.copytree(made, data_dir, ignore=ignored, dirs_exist_ok=True)
    shutil.copytree(made / "static", data_dir / "static", copy_function=os.link)
    found: dict[str, str] = json.loads((made / _SECRETS).read_text())
    return found


def copy_tables(file: Path, run_directory: Path, environment: dict[str, str]) -> None:
    """Make `file` a SQLite database with the tables of this run's template."""
    made = run_directory / "template-sqlite"
    _once(made, lambda making: _run(["-c", _MIGRATE], making, environment))
    for end in ("", "-wal"):
        part = made / f"helmdash.sqlite3{end}"
        if part.exists():
            shutil.copy2(part, file.with_name(file.name + end))


def template_database(server_url: str, run_directory: Path, environment: dict[str, str]) -> str:
    """The name of the database with this run's tables on a PostgreSQL server, made by now."""

    def make(making: Path) -> None:
        url = create_database(server_url, _TABLES)
        _run(["-c", _MIGRATE], making, {**environment, "DATABASE_URL": url})

    _once(run_directory / "template-postgres", make)
    return _TABLES


def _served_template(run_directory: Path, environment: dict[str, str], server_url: str) -> Path:
    def make(making: Path) -> None:
        chosen = {
            "HELMDASH_BOOTSTRAP_API_KEY": "hd_test_" + secrets.token_hex(16),
            "HELMDASH_ADMIN_PASSWORD": secrets.token_urlsafe(16),
        }
        given = {**environment, **chosen}
        if server_url:
            tables = template_database(server_url, run_directory, environment)
            given["DATABASE_URL"] = create_database(server_url, SERVED_DATABASE, template=tables)
        else:
            copy_tables(making / "helmdash.sqlite3", run_directory, environment)
        # Forked, as the servers will be that begin with it.
        given = {**given, **_settings_of(making)}
        _check(run_python("manage.py", "up", "--setup-only", env=given, timeout=_SECONDS))
        (making / _SECRETS).write_text(json.dumps(chosen))

    made = run_directory / f"template-served-{'postgres' if server_url else 'sqlite'}"
    _once(made, make)
    return made


def _once(directory: Path, make: Callable[[Path], None]) -> None:
    """Let `make` fill the directory, unless it has been."""
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.exists():
            return
        making = directory.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        make(making)
        making.rename(directory)


def _run(arguments: list[str], data_dir: Path, environment: dict[str, str]) -> None:
    _check(
        subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**environment, **_settings_of(data_dir)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    )


def _settings_of(data_dir: Path) -> dict[str, str]:
    return {"HELMDASH_DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "helmdash.settings"}


def _check(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise RuntimeError(f"no template could be made: {done.stderr[-2000:]}")
