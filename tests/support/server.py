"""A running HelmDash, as `make run` starts it: `manage.py up` on a free port with its own data."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from tests.support import environment
from tests.support.postgres import create_database, drop_database
from tests.support.processes import (
    Process,
    free_port,
    kill,
    run_python,
    spawn_python,
    stop,
    tail,
    wait_for_http,
)
from tests.support.template import (
    SERVED_DATABASE,
    copy_tables,
    copy_template,
    template_database,
)


@dataclass(slots=True, kw_only=True)
class Served:
    """One server with its data. `kill` and `start` again keep the data; `close` removes it."""

    data_dir: Path
    database_url: str = ""
    """Empty: SQLite in the data directory."""
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    api_key: str = field(default_factory=lambda: "hd_test_" + secrets.token_hex(16))
    admin_password: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    forked: bool = False
    """Whether it starts with its packages loaded (tests/support/forking.py)."""
    process: Process = field(init=False)

    @property
    def base_url(self) -> str:
        """http://127.0.0.1:PORT, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """What a client of the API sends."""
        return {"Authorization": f"Bearer {self.api_key}"}

    @property
    def log(self) -> str:
        """What the server has printed lately."""
        return tail(self._log_file)

    def start(self) -> None:
        """Start the server and wait until it answers. Raises RuntimeError with its log."""
        self.process = spawn_python(
            "manage.py", "up", log=self._log_file, env=self.environment(), forked=self.forked
        )
        try:
            wait_for_http(f"{self.base_url}/healthz", process=self.process, log=self._log_file)
        except RuntimeError:
            self.kill()
            raise

    def stop(self) -> int:
        """End the server as Ctrl-C would; returns its exit code."""
        return stop(self.process)

    def kill(self) -> None:
        """End the server and its children at once, as a power cut would."""
        kill(self.process)

    def close(self) -> None:
        """End the server at once and drop its database; the data directory goes with the test's.

        Nobody looks at it any more: a dozen servers that end in order take as many seconds.
        """
        self.kill()
        if self.database_url:
            drop_database(self.database_url)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command on this server's data."""
        return run_python("manage.py", *arguments, env=self.environment(), timeout=120)

    def environment(self) -> dict[str, str]:
        """The environment of the server and of commands on its data."""
        return {
            **environment.clean(),
            "PYTHONUNBUFFERED": "1",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "HELMDASH_DATA_DIR": str(self.data_dir),
            "HELMDASH_BOOTSTRAP_API_KEY": self.api_key,
            "HELMDASH_ADMIN_PASSWORD": self.admin_password,
            **({"DATABASE_URL": self.database_url} if self.database_url else {}),
            **self.settings,
        }

    @property
    def _log_file(self) -> Path:
        return self.data_dir.with_suffix(".log")


def serve(parent: Path, *, first: bool = False, **settings: str) -> Served:
    """Start a server with fresh data below `parent`, on the database of this run.

    `settings` are environment variables for it, such as HELMDASH_LOG_LEVEL="DEBUG".
    first: a first start, with tables and nothing in them, of a process that is not forked.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="served-", dir=parent))
    run_directory, given = Path(os.environ["HELMDASH_DATA_DIR"]), environment.clean()
    on_postgres = environment.database() == "postgres" and "DATABASE_URL" not in settings
    server_url = os.environ["DATABASE_URL"] if on_postgres else ""
    template = ""
    served = Served(data_dir=data_dir, settings=settings, forked=not first)
    if not first:
        found = copy_template(data_dir, run_directory, given, server_url)
        served.api_key = found["HELMDASH_BOOTSTRAP_API_KEY"]
        served.admin_password = found["HELMDASH_ADMIN_PASSWORD"]
        template = SERVED_DATABASE
    elif server_url:
        template = template_database(server_url, run_directory, given)
    else:
        copy_tables(data_dir / "helmdash.sqlite3", run_directory, given)
    if server_url:
        name = f"served_{uuid4().hex}"
        served.database_url = create_database(server_url, name, template=template)
    served.start()
    return served
