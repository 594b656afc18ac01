"""What every database and every server of a run begins with, made once.

Empty tables: thirty migrations take 4 s of CPU, more than all else `manage.py up` does at a first
start. And collected static files. A server with a template's copy still makes its own project,
budgets, keys and admin. A first start from nothing has its own test (tests/server).

The run's directory is shared by all its workers: one of them makes the template.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support import ROOT
from tests.support.postgres import create_database

_SECONDS = 300
_DJANGO = "import django; django.setup(); from django.core.management import call_command; "
_MIGRATE = _DJANGO + "call_command('migrate', interactive=False, verbosity=0)"
_COLLECT = _DJANGO + "from helmdash.cli.management.commands import up; up._collect_static()"
# The name of PostgreSQL's template database.
_DATABASE = "served_template"


def copy_template(data_dir: Path, run_directory: Path, environment: dict[str, str]) -> None:
    """Put the SQLite file and the static files of this run's template into an empty `data_dir`."""
    copy_tables(data_dir / "helmdash.sqlite3", run_directory, environment)
    made = run_directory / "template-static"
    _once(made, lambda making: _run(_COLLECT, making, environment))
    shutil.copytree(made / "static", data_dir / "static", copy_function=os.link)


def copy_tables(file: Path, run_directory: Path, environment: dict[str, str]) -> None:
    """Make `file` a SQLite database with the tables of this run's template."""
    made = run_directory / "template-sqlite"
    _once(made, lambda making: _run(_MIGRATE, making, environment))
    for end in ("", "-wal"):
        part = made / f"helmdash.sqlite3{end}"
        if part.exists():
            shutil.copy2(part, file.with_name(file.name + end))


def copy_template_database(
    server_url: str, name: str, run_directory: Path, environment: dict[str, str]
) -> str:
    """Create a PostgreSQL database with the tables of this run's template; returns its URL."""
    template = template_database(server_url, run_directory, environment)
    return create_database(server_url, name, template=template)


def template_database(server_url: str, run_directory: Path, environment: dict[str, str]) -> str:
    """The name of this run's template on the PostgreSQL server of `server_url`, made by now."""

    def make(making: Path) -> None:
        url = create_database(server_url, _DATABASE)
        _run(_MIGRATE, making, {**environment, "DATABASE_URL": url})

    _once(run_directory / "template-postgres", make)
    return _DATABASE


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


def _run(script: str, data_dir: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={
            **environment,
            "HELMDASH_DATA_DIR": str(data_dir),
            "DJANGO_SETTINGS_MODULE": "helmdash.settings",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"no template could be made: {done.stderr[-2000:]}")
