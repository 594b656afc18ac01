"""What is wrong with a place or a setting is one line that names the variable, with no password."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, ProgrammingError, connection

from helmdash import conf, places
from helmdash.cli.running import look_around, run, told
from helmdash.conf import BadSetting
from helmdash.core.budgets.budget_table import MissingFallback
from tests.support import ROOT
from tests.support.environment import clean

SECRET = "sekret"
Prepare = Callable[[Path], Mapping[str, str]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory of its own, and nothing else set."""
    for name in set(os.environ) - set(clean()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HELMDASH_DATA_DIR", str(tmp_path / "data"))
    conf.env.cache_clear()
    yield tmp_path / "data"
    monkeypatch.undo()
    conf.env.cache_clear()


def of_the_server(cause: psycopg.Error) -> ProgrammingError:
    """What Django makes of it."""
    error = ProgrammingError(str(cause))
    error.__cause__ = cause
    return error


def make_tables(path: Path, *, release: int | None, oldest_code: int = 0) -> None:
    """A SQLite file that looks like ours from outside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as handle:
        handle.execute("CREATE TABLE django_migrations (app, name)")
        if release is not None:
            handle.execute("CREATE TABLE records_schemamark (release, oldest_code)")
            handle.execute("INSERT INTO records_schemamark VALUES (?, ?)", [release, oldest_code])
    handle.close()


def below_a_file(data: Path) -> Mapping[str, str]:
    data.write_text("")
    return {"HELMDASH_DATA_DIR": str(data / "below")}


def a_file(data: Path) -> Mapping[str, str]:
    data.write_text("")
    return {}


def a_circle(data: Path) -> Mapping[str, str]:
    data.symlink_to(data)
    return {}


def a_pipe(data: Path) -> Mapping[str, str]:
    data.mkdir()
    os.mkfifo(data / "secret-key")
    return {}


def made(name: str, body: bytes | None) -> Prepare:
    """A file in the data directory; None: a directory of that name."""

    def prepare(data: Path) -> Mapping[str, str]:
        data.mkdir()
        (data / name).write_bytes(body) if body is not None else (data / name).mkdir()
        return {}

    return prepare


def tables(*, release: int | None, oldest_code: int = 0) -> Prepare:
    def prepare(data: Path) -> Mapping[str, str]:
        make_tables(data / "helmdash.sqlite3", release=release, oldest_code=oldest_code)
        return {}

    return prepare


def env(**variables: str) -> Prepare:
    return lambda data: variables


PLACES: list[tuple[str, Prepare, str]] = [
    ("HELMDASH_DATA_DIR", a_file, "is a file"),
    ("HELMDASH_DATA_DIR", below_a_file, "below a file"),
    ("HELMDASH_DATA_DIR", a_circle, "symbolic links"),
    ("HELMDASH_DATA_DIR", a_pipe, "it is a pipe"),
    ("HELMDASH_DATA_DIR", env(HELMDASH_DATA_DIR="/proc/nothing"), "cannot be made"),
    ("HELMDASH_DATA_DIR", made("helmdash.sqlite3", os.urandom(9000)), "not a SQLite database"),
    ("HELMDASH_DATA_DIR", made("helmdash.sqlite3", b"SQLite format 3\0" + bytes(9000)), ""),
    ("HELMDASH_DATA_DIR", made("helmdash.sqlite3", None), "is not a file"),
    ("HELMDASH_DATA_DIR", made("secret-key", None), "secret key"),
    ("HELMDASH_DATA_DIR", made("secret-key", b" \n"), "is empty"),
    ("HELMDASH_DATA_DIR", made("secret-key", b"\xff\xfe"), "no text"),
    ("HELMDASH_DATA_DIR", made("spool", b""), "must be a directory"),
    ("HELMDASH_DATA_DIR", made("static", b""), "must be a directory"),
    ("HELMDASH_DATA_DIR", tables(release=places.SCHEMA_RELEASE + 2), "newer HelmDash"),
    (
        "HELMDASH_DATA_DIR",
        tables(release=places.SCHEMA_RELEASE + 1, oldest_code=places.SCHEMA_RELEASE + 1),
        "newer HelmDash",
    ),
    ("DATABASE_URL", env(DATABASE_URL="sqlite:////nowhere/at/all/x.db"), "is not a directory"),
    ("DATABASE_URL", env(DATABASE_URL="sqlite"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="sqlite:///"), "must name a file"),
    ("DATABASE_URL", env(DATABASE_URL="mysql://u:sekret@h/x"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="postgres:/u:sekret@h/x"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@h:99999/x"), "port"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@h:0/x"), "port"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@h:five/x"), "port"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:se#kret@h:5432/x"), ""),
    ("DATABASE_URL", env(DATABASE_URL="postgres://:5432/x"), "no host"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@:5432/x"), "no host"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@h"), "no database"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@[::1/x"), ""),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@127.0.0.1:1/x"), "cannot connect"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@no.host.invalid/x"), "cannot connect"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:sekret@h/x?nonsense=sekret"), "nonsense"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u@h/x?password=sekret&port=1x"), ""),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:my%sekret@127.0.0.1:1/x"), "%25"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:a%00sekret@127.0.0.1:1/x"), "%25"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://sekret%zz@127.0.0.1:1/x"), "%25"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u@h/x?options=sekret%zz"), "%25"),
    ("DATABASE_URL", env(DATABASE_URL="postgres://u:my@sekret@127.0.0.1:1/x"), "%40"),
    ("DATABASE_URL", env(DATABASE_URL="postgres//u:sekret@h/x"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="u:sekret@h/x"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="host=h password=sekret dbname=x"), "must start with"),
    ("DATABASE_URL", env(DATABASE_URL="host=h password = 'my sekret' user=x"), "must start with"),
    ("OPENAI_BASE_URL", env(OPENAI_BASE_URL="ftp://x"), "http://"),
    ("ANTHROPIC_BASE_URL", env(ANTHROPIC_BASE_URL="https://"), ""),
    ("GEMINI_BASE_URL", env(GEMINI_BASE_URL="https://u:sekret@x"), "user name or password"),
    ("OPENROUTER_BASE_URL", env(OPENROUTER_BASE_URL="https://x:99999/api"), "port"),
    ("OLLAMA_HOST", env(OLLAMA_HOST="ftp://x"), "http://"),
    ("OLLAMA_HOST", env(OLLAMA_HOST="x:99999"), "port"),
    ("OLLAMA_HOST", env(OLLAMA_HOST="http://[::1"), ""),
    ("OLLAMA_HOST", env(OLLAMA_HOST="u:sekret@x:99999"), ""),
    ("OPENAI_BASE_URL", env(OPENAI_BASE_URL="https:/u:sekret@x"), "http://"),
    ("GROQ_BASE_URL", env(GROQ_BASE_URL="https://x/v1?key=sekret"), "query"),
    ("OPENAI_API_KEY", env(OPENAI_API_KEY="sekret\nsekret"), "control characters"),
    ("GOOGLE_API_KEY", env(GOOGLE_API_KEY="sekret\x7f2"), "control characters"),
    ("OLLAMA_API_KEY", env(OLLAMA_API_KEY="sekret\r\nx"), "control characters"),
    ("PORT", env(PORT="http"), "must be a whole number"),
    ("PORT", env(PORT="65536"), "must be at most 65535"),
    ("HELMDASH_METRICS_OPEN", env(HELMDASH_METRICS_OPEN="maybe"), "must be 1 or 0"),
    ("HELMDASH_WRITER", env(HELMDASH_WRITER="both"), "must be 'auto', 'process' or 'thread'"),
    ("HELMDASH_DEFAULT_MODEL", env(HELMDASH_DEFAULT_MODEL="x" * 256), "at most 255 characters"),
    ("HELMDASH_PUBLIC_URL", env(HELMDASH_PUBLIC_URL="https://x/helm"), "below a path"),
    ("HELMDASH_PUBLIC_URL", env(HELMDASH_PUBLIC_URL="https://x?y"), "a host and a port alone"),
    ("HELMDASH_PUBLIC_URL", env(HELMDASH_PUBLIC_URL="https://u:sekret@x"), "a host and a port"),
    ("HELMDASH_MAIL_FROM", env(HELMDASH_MAIL_FROM="the ops team"), "must be an address"),
    ("HELMDASH_MAIL_FROM", env(HELMDASH_MAIL_FROM="a@x.test\nBcc: b@x.test"), "an address"),
    ("HELMDASH_OIDC_SCOPES", env(HELMDASH_OIDC_SCOPES="profile,openid"), "openid among them"),
    ("HOST", env(HOST="http://0.0.0.0"), "without scheme"),
    ("HELMDASH_PUBLIC_URL", env(HELMDASH_PUBLIC_URL="https://:8000"), "no host"),
    ("HELMDASH_PUBLIC_URL", env(HELMDASH_PUBLIC_URL="https://[x"), ""),
    ("HELMDASH_ALLOWED_HOSTS", env(HELMDASH_ALLOWED_HOSTS="a,https://b"), "without scheme"),
    ("HELMDASH_WORKERS", env(HELMDASH_WORKERS="many"), "whole number"),
    ("HELMDASH_BOOTSTRAP_API_KEY", env(HELMDASH_BOOTSTRAP_API_KEY="sekret key"), "one word"),
]


@pytest.mark.parametrize(("variable", "prepare", "words"), PLACES)
def test_a_bad_place_or_value_is_one_line_that_names_its_variable(
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    prepare: Prepare,
    words: str,
) -> None:
    for name, value in prepare(data).items():
        monkeypatch.setenv(name, value)

    code = run(["manage.py", "up"])

    said = capsys.readouterr().err
    assert code == 1
    assert re.fullmatch(
        rf"HelmDash cannot start: {variable}=[^\n]*{re.escape(words)}[^\n]*\n", said
    )
    assert SECRET not in said
    assert "Traceback" not in said


def test_blanks_around_a_providers_key_are_left_off(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`$(cat key)` on Windows, `none needed` for a server that wants no key."""
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1\r\n")
    monkeypatch.setenv("GROQ_API_KEY", "none needed")

    look_around("up")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("helm.test:8000", "helm.test"),
        ("helm.test:", "helm.test"),
        ("[::1]:8000", "[::1]"),
        ("[::1]", "[::1]"),
        (".helm.test", ".helm.test"),
    ],
)
def test_a_port_beside_the_name_of_a_host_is_left_off(
    data: Path, monkeypatch: pytest.MonkeyPatch, written: str, name: str
) -> None:
    """With it the name was compared with what never has one: every page was a 400."""
    monkeypatch.setenv("HELMDASH_ALLOWED_HOSTS", f"other.test, {written}")

    assert conf.env().allowed_hosts == ("other.test", name)


@pytest.mark.parametrize("written", ["helm@x.test", "HelmDash <helm@x.test>"])
def test_mails_come_from_an_address_with_or_without_a_name(
    data: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("HELMDASH_MAIL_FROM", written)

    assert conf.env().mail_from == written


def test_set_to_nothing_is_not_set(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "PORT", "DATABASE_URL", "HELMDASH_WORKERS", "HELMDASH_PUBLIC_URL"):
        monkeypatch.setenv(name, "")

    assert conf.read_env() == conf.Env(data_dir=data)


@pytest.mark.parametrize(
    ("command", "prepare", "words"),
    [
        ("apikey", env(), "run `manage.py up` first"),  # nothing there
        ("retain", tables(release=None), "older release"),
        ("retain", tables(release=places.SCHEMA_RELEASE - 1), "older release"),
        ("retain", tables(release=places.SCHEMA_RELEASE), None),
        ("retain", tables(release=places.SCHEMA_RELEASE + 1, oldest_code=0), None),
        ("up", tables(release=places.SCHEMA_RELEASE + 1, oldest_code=0), None),
        ("up", tables(release=None), None),
        ("up", env(), None),
        ("settings_help", tables(release=places.SCHEMA_RELEASE + 2), None),
    ],
)
def test_tables_are_ours_ours_by_up_or_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, command: str, prepare: Prepare, words: str | None
) -> None:
    for name, value in prepare(data).items():
        monkeypatch.setenv(name, value)
    if words is None:
        look_around(command)
        return

    with pytest.raises(BadSetting, match=words):
        look_around(command)


def test_looking_makes_no_database(data: Path) -> None:
    look_around("up")

    assert sorted(path.name for path in data.iterdir()) == ["secret-key"]


def test_two_that_start_at_once_have_one_key(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second starts when the first one has made the file, and has not written the key."""
    write, others = os.fdopen, []

    def start_another(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(os, "fdopen", write)
        others.append(conf.secret_key(conf.env()))
        return write(*given, **named)

    monkeypatch.setattr(os, "fdopen", start_another)

    assert [conf.secret_key(conf.env())] == others
    assert [path.name for path in data.iterdir()] == ["secret-key"]
    assert (data / "secret-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", ["up", "doctor"])
def test_a_data_directory_that_is_made_is_its_owners_alone(data: Path, command: str) -> None:
    """One that was there keeps what its owner gave it."""
    look_around(command)
    assert data.stat().st_mode & 0o777 == 0o700

    data.chmod(0o750)
    conf.env.cache_clear()
    look_around(command)
    assert data.stat().st_mode & 0o777 == 0o750


def test_a_key_is_made_where_there_are_no_hard_links(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object) -> None:
        raise OSError(errno.EPERM, "no hard links here", *names)

    monkeypatch.setattr(os, "link", refuse)

    assert conf.secret_key(conf.env()) == (data / "secret-key").read_text(encoding="ascii")
    assert [path.name for path in data.iterdir()] == ["secret-key"]


def test_a_file_that_is_kept_locked_is_told_after_seconds(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tables(data / "helmdash.sqlite3", release=places.SCHEMA_RELEASE)
    monkeypatch.setattr(places, "_CONNECT_SECONDS", 0.1)
    other = sqlite3.connect(data / "helmdash.sqlite3", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(BadSetting, match=r"HELMDASH_DATA_DIR=.* locked by another process"):
        look_around("up")

    other.close()
    look_around("up")


def test_a_spelling_mistake_is_told_and_stops_nobody(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HELMDASH_WORKER", "2")

    look_around("up")

    said = capsys.readouterr().err
    assert said == "Warning: HELMDASH_WORKER is not a setting (did you mean HELMDASH_WORKERS?).\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MissingFallback("no fallback row"), "`manage.py load_budgets` puts it there"),
        (OperationalError("database or disk is full"), "the disk is full"),
        (DatabaseError("database disk image is malformed"), "is damaged"),
        (OSError(28, "No space left on device", "{data}/static/x.css"), "the disk is full"),
        (OSError(28, "No space left on device"), "the disk is full"),
        (OSError(30, "Read-only file system", "{data}/spool/x"), "is read-only"),
        (BadSetting("PORT=0: no"), "PORT=0"),
        (OSError(2, "No such file or directory", "/elsewhere"), None),
        (ProgrammingError("syntax error"), None),
        (
            of_the_server(psycopg.errors.DuplicateTable('relation "x" already exists')),
            '"x" already',
        ),
        (of_the_server(psycopg.errors.SyntaxError("at or near x")), None),
        (ZeroDivisionError(), None),
    ],
)
def test_what_breaks_later_is_told_alike_and_our_own_faults_keep_their_traceback(
    data: Path, error: Exception, words: str | None
) -> None:
    if isinstance(error, OSError) and isinstance(error.filename, str):
        error.filename = error.filename.format(data=data)

    line = told(error)

    assert (line is None) if words is None else words in (line or "")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks a server of PostgreSQL")
def test_a_server_of_postgresql_says_no_in_one_line(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = connection.settings_dict
    place = quote(settings["HOST"], safe="") + (f":{settings['PORT']}" if settings["PORT"] else "")
    for url, words in (
        (f"postgres://postgres:sekret@{place}/nowhere", "database .nowhere. does not exist"),
        (f"postgres://nobody:sekret@{place}/postgres", "nobody"),
    ):
        monkeypatch.setenv("DATABASE_URL", url)
        conf.env.cache_clear()
        with pytest.raises(BadSetting, match=words) as refused:
            look_around("up")
        assert SECRET not in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks a server of PostgreSQL")
def test_an_empty_database_that_has_not_room_for_every_text_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = connection.settings_dict
    server = {"host": settings["HOST"], "port": settings["PORT"], "user": settings["USER"]}
    name = f"ascii_{uuid4().hex}"
    with psycopg.connect(**server, dbname="postgres", autocommit=True) as handle:
        made = f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        handle.execute(made.encode())
        port = f":{settings['PORT']}" if settings["PORT"] else ""
        place = f"{settings['USER']}@{quote(settings['HOST'], safe='')}{port}"
        monkeypatch.setenv("DATABASE_URL", f"postgres://{place}/{name}")
        conf.env.cache_clear()
        try:
            with pytest.raises(BadSetting, match="encoding is SQL_ASCII; make one with ENCODING"):
                look_around("up")
        finally:
            handle.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.parametrize(
    ("command", "passes"), [("backup", True), ("move", True), ("retain", False), ("up", False)]
)
def test_what_takes_data_away_from_a_full_disk_may_begin(
    data: Path, monkeypatch: pytest.MonkeyPatch, command: str, passes: bool
) -> None:
    """A backup to another disk was refused for want of room on this one."""
    make_tables(data / "helmdash.sqlite3", release=places.SCHEMA_RELEASE)
    look_around(command)

    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)

    if passes:
        look_around(command)
        (data / "helmdash.sqlite3").write_bytes(os.urandom(5000))
    with pytest.raises(BadSetting, match=f"HELMDASH_DATA_DIR={data}: the disk is full"):
        look_around(command)


# To SQLite a file that may not grow is a full disk; each connection has a limit of its own.
_FULL = """
import sys
from django.db.backends.signals import connection_created
from helmdash.cli.running import run

def stop_growing(connection, **_):
    with connection.cursor() as cursor:
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages + int(sys.argv[1])}")

connection_created.connect(stop_growing)
sys.exit(run(["manage.py", *sys.argv[2:]]))
"""


def test_a_command_on_a_full_disk_tells_its_own_failure_and_what_became_of_its_work(
    tmp_path: Path,
) -> None:
    """Each one was told as "HelmDash cannot start", and a demo that was loaded in part as nothing
    else."""

    def call(*given: str, room: int = 10_000) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _FULL, str(room), *given],
            cwd=ROOT,
            env={**clean(), "HELMDASH_DATA_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert call("up", "--setup-only").returncode == 0
    full = f"HELMDASH_DATA_DIR={tmp_path}: the disk is full"

    demo = call("demo", "load", room=100)

    assert (demo.returncode, demo.stderr) == (
        1,
        f"`manage.py demo` failed: {full}; a part may be loaded: `demo load` begins anew\n",
    )
    again = call("demo", "load")
    assert (again.returncode, again.stderr) == (0, "")
    assert "The project “Demo”: recorded" in again.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("up", "HelmDash cannot start: "),
        ("retain", "`manage.py retain` cannot run: "),
    ],
)
def test_what_is_wrong_before_a_command_begins_is_told_as_its_own(
    data: Path, capsys: pytest.CaptureFixture[str], command: str, said: str
) -> None:
    data.write_text("")

    assert run(["manage.py", command]) == 1
    assert capsys.readouterr().err.startswith(f"{said}HELMDASH_DATA_DIR={data}")


def test_the_command_itself_says_it_in_one_line(tmp_path: Path) -> None:
    """The one that goes through a shell; the table above is the same code."""
    (tmp_path / "helmdash.sqlite3").write_bytes(os.urandom(5000))

    done = subprocess.run(
        [sys.executable, "manage.py", "retain"],
        cwd=ROOT,
        env={**clean(), "HELMDASH_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"HELMDASH_DATA_DIR={tmp_path}" in done.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        # as docs/operations.md and compose.yaml write it, with the password in PGPASSWORD
        ("postgres://helm@db:5432/helm", "postgres://helm@db:5432/helm"),
        ("postgres://helm@%2Frun%2Fpg/helm", "postgres://helm@%2Frun%2Fpg/helm"),
        ("postgres://helm@[::1]:5432/helm", "postgres://helm@[::1]:5432/helm"),
        ("postgres://helm:sekret@db:5432/helm", "postgres://helm:***@db:5432/helm"),
        ("postgres://helm:sek@ret@db/helm", "postgres://helm:***@db/helm"),
        ("postgres://helm@corp:sekret@db/helm", "postgres://helm@corp:***@db/helm"),
        ("postgres://helm/x:sekret@db/helm", "postgres://helm/x:***@db/helm"),
        ("postgres://helm@db/helm?password=sekret", "postgres://helm@db/helm"),
        ("postgres://sekret%zz@db/helm", "postgres://***@db/helm"),
        ("postgres:helm:sekret@db/helm", "postgres:***@db/helm"),
        ("smtp://mail.test:25", "smtp://mail.test:25"),
    ],
)
def test_a_url_is_shown_as_it_is_but_its_password(url: str, shown: str) -> None:
    assert conf.masked(url) == shown


def test_a_question_that_nobody_can_answer_is_no_traceback(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal, as in a unit or in cron."""

    def ask(argv: list[str]) -> None:
        raise EOFError

    monkeypatch.setattr("helmdash.cli.running.look_around", lambda *rest: None)
    monkeypatch.setattr("django.core.management.execute_from_command_line", ask)

    assert run(["manage.py", "changepassword"]) == 1
    assert capsys.readouterr().err.endswith("this command asks, and nobody can answer here.\n")


@pytest.mark.parametrize("asked", [{"NO_COLOR": "1"}, {"NO_COLOR": ""}])
def test_a_terminal_gets_no_colors_where_it_wants_none(
    tmp_path: Path, asked: Mapping[str, str]
) -> None:
    """https://no-color.org: set, and to something."""
    ours, theirs = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "manage.py", "restore", str(tmp_path / "none.zip")],
            cwd=ROOT,
            env={**clean(), "HELMDASH_DATA_DIR": str(tmp_path / "data"), "TERM": "xterm", **asked},
            stdout=theirs,
            stderr=theirs,
            timeout=60,
            check=False,
        )
        said = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert "No such file or directory" in said
    assert bool(re.search(r"\x1b\[[0-9;]+m", said)) == (not asked["NO_COLOR"])


def test_psycopg_never_gets_to_tell_a_password() -> None:
    error = psycopg.ProgrammingError('unexpected in URI: "postgresql://u:sekret@h:x/y"')

    assert SECRET not in places.database_problem(error)
