"""What every server of a run begins with, made once: empty tables, and collected static files.

Making them takes `manage.py up` longer than all else it does at a first start. A server with a
template's copy still makes its own project, budgets, keys and admin. A first start from nothing
has its own test (tests/server).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import ROOT
from tests.support.postgres import create_database

_SECONDS = 120
_MAKE = """
import django
django.setup()
from django.core.management import call_command
from helmdash.cli.management.commands import up
call_command("migrate", interactive=False, verbosity=0)
up._collect_static()
"""
# The name of PostgreSQL's template database.
_DATABASE = "served_template"


def copy_template(data_dir: Path, run_directory: Path, environment: dict[str, str]) -> None:
    """Put the SQLite file and the static files of this run's template into an empty `data_dir`.

    `run_directory` is shared by all workers of the run: one of them makes the template.
    """
    template = run_directory / "template"
    _make_once(template, environment)
    for name in ("helmdash.sqlite3", "helmdash.sqlite3-wal"):
        if (template / name).exists():
            shutil.copy2(template / name, data_dir / name)
    shutil.copytree(template / "static", data_dir / "static", copy_function=os.link)


def copy_template_database(
    server_url: str, name: str, run_directory: Path, environment: dict[str, str]
) -> str:
    """Create a PostgreSQL database with the tables of this run's template; returns its URL."""
    url = server_url.rsplit("/", 1)[0] + "/" + _DATABASE
    template = run_directory / "template-postgres"
    _make_once(template, {**environment, "DATABASE_URL": url}, before=server_url)
    return create_database(server_url, name, template=_DATABASE)


def _make_once(template: Path, environment: dict[str, str], before: str = "") -> None:
    with template.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if template.exists():
            return
        if before:
            create_database(before, _DATABASE)
        making = template.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        done = subprocess.run(
            [sys.executable, "-c", _MAKE],
            cwd=ROOT,
            env={
                **environment,
                "HELMDASH_DATA_DIR": str(making),
                "DJANGO_SETTINGS_MODULE": "helmdash.settings",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"no template of a server could be made: {done.stderr[-2000:]}")
        making.rename(template)
