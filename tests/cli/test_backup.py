"""Backups: taken under load, restored elsewhere with all in it once; bad archives are refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from helmdash import conf
from helmdash.operations.backup.archive import (
    DATABASE,
    TABLES,
    ArchiveMember,
    ArchiveProblem,
    Manifest,
    reading,
    writing,
)
from helmdash.operations.backup.restoring import check_complete, find_data
from helmdash.operations.backup.spool import copied
from tests.recorder.test_outages import House, assert_every_row_adds_up
from tests.support import environment
from tests.support.postgres import create_database, drop_database
from tests.support.processes import kill, run_python
from tests.support.template import copy_tables, template_database

KEY = "hd_test_of_backups"
PASSWORD = "a password of backups"
SEALED = "sk-a-key-of-a-provider"

# Run in a process of its own on some house: what a backup has to bring along besides calls.
SEED = f"""
from tests.recorder import driver
driver._setup()
from helmdash.core.access.permissions import SHELL
from helmdash.operations.access import keys, members
from helmdash.records.models import Upstream
from helmdash.records.access.secrets import seal
members.ensure_admin(password={PASSWORD!r})
keys.create_key(name="kept", scopes=("read",), secret={KEY!r}, actor=SHELL)
Upstream.objects.create(name="one", kind="openai", base_url="https://x.test/v1",
                        key_encrypted=seal({SEALED!r}))
"""
LOOK = f"""
import errno
import json
from tests.recorder import driver
driver._wait()  # a start: what waited in the spool is stored
driver._list()
print()
from django.contrib.auth import authenticate
from helmdash.queries.access.access import find_caller
from helmdash.records.models import ApiKey, Project, Upstream
from helmdash.records.access.secrets import unseal
found = find_caller(key={KEY!r})
print(json.dumps({{
    "key": found.name if found else None,
    "signed in": authenticate(username="admin", password={PASSWORD!r}) is not None,
    "sealed": unseal(Upstream.objects.get(name="one").key_encrypted),
    "next id": Project.objects.create(slug="next", name="Next").pk,
    "projects": Project.objects.count(),
}}))
"""


_OTHER_VERSION = """
from django.db.migrations.recorder import MigrationRecorder
from django.db import connection
MigrationRecorder(connection).record_applied("records", "9999_later")
"""
_NAMES = """
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from helmdash.records.models import ApiKey
print(sorted(ApiKey.objects.values_list("name", flat=True)))
print(sorted(MigrationRecorder(connection).applied_migrations()))
"""


def python(house: House, body: str) -> str:
    start = "import os, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'helmdash.settings'; "
    return done(house, "-c", f"{start}django.setup()\n{body}")


def done(house: House, *arguments: str, code: int = 0) -> str:
    given = {"DATABASE_URL": house.database_url} if house.database_url else {}
    env = {**environment.clean(), "HELMDASH_DATA_DIR": str(house.data_dir), **given}
    ran = run_python(*arguments, env=env, timeout=120)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stderr if code else ran.stdout


@pytest.fixture
def new_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    """A function that makes a place for a HelmDash, on the database of this run: an empty one, or
    (with_tables=True) one with the tables of the run's template."""
    made: list[House] = []
    run, given = Path(os.environ["HELMDASH_DATA_DIR"]), environment.clean()

    def make(name: str, *, with_tables: bool = False) -> House:
        house = House(data_dir=tmp_path / name)
        if environment.database() == "postgres":
            server = os.environ["DATABASE_URL"]
            template = template_database(server, run, given) if with_tables else "template1"
            house.database_url = create_database(server, f"backup_{uuid4().hex}", template=template)
        elif with_tables:
            house.data_dir.mkdir()
            copy_tables(house.database, run, given)
        made.append(house)
        return house

    yield make
    for house in made:
        for process in house.processes:
            kill(process)
        if house.database_url:
            drop_database(house.database_url)


def rows_in(said: str) -> int:
    """How many rows a command says it has written."""
    return int(said.partition(" rows")[0].rpartition(" ")[2])


@pytest.mark.slow
def test_a_backup_under_load_is_restored_elsewhere_with_every_call_once(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    house, other = new_house("here", with_tables=True), new_house("there")
    python(house, SEED)
    process = house.load("a")
    archive = tmp_path / "backup.zip"
    before = house.noted("a")

    said = done(house, "manage.py", "backup", str(archive))

    assert process.poll() is None, "the server went on"
    assert archive.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []
    running = done(house, "manage.py", "restore", str(archive), "--force", code=1)
    assert "a server is running" in running
    if house.database_url:
        # Another host's data directory says nothing of who works on the database.
        away = House(data_dir=tmp_path / "away", database_url=house.database_url)
        running = done(away, "manage.py", "restore", str(archive), "--force", code=1)
        assert "a HelmDash works on the database, from this host: stop it first" in running
    kill(process)

    restored = done(other, "manage.py", "restore", str(archive))
    assert "may enter again: look at Settings, Keys and Members" in restored
    listed, _, looked = python(other, LOOK).partition("\n")

    assert (
        said.split(" rows")[0].rpartition(" ")[2] == restored.split(" rows")[0].rpartition(" ")[2]
    )
    found = json.loads(listed)
    assert set(before) <= set(found["calls"])
    assert len(found["calls"]) == len(set(found["calls"])) == found["ledger"]["stored"]
    assert found["generations"] == len(found["calls"])
    assert_every_row_adds_up(found)
    assert (found["ledger"]["waiting"], found["ledger"]["rejected"]) == (0, 0)
    assert (found["running"], found["integrity"]) == (0, "ok")
    seen: dict[str, Any] = json.loads(looked)
    assert seen == {
        "key": "kept",
        "signed in": True,
        "sealed": SEALED,
        "next id": seen["next id"],
        "projects": 2,
    }

    refused = done(other, "manage.py", "restore", str(archive), code=1)
    assert "with --force" in refused
    assert refused.count("\n") == 1
    assert rows_in(done(other, "manage.py", "restore", str(archive), "--force")) == rows_in(said)


# Runs a command that may make no file larger: as on a disk that is full, but for the words.
_LITTLE_ROOM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.argv = ["manage.py", *sys.argv[1:]]
from helmdash.cli.running import main
sys.exit(main())
"""


def test_a_backup_that_finds_no_room_says_so_in_one_line_and_leaves_nothing(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    house, archive = new_house("here", with_tables=True), tmp_path / "backup.zip"
    if house.database_url:
        # Of SQLite it is the copy of the database that has no room.
        spool = house.data_dir / "spool"
        spool.mkdir(parents=True)
        (spool / "a-000001.ndjson").write_text(os.urandom(200_000).hex() + "\n")
    before = sorted(tmp_path.iterdir())
    if not house.database_url:
        # As a disk leaves it that has not even the room to undo what was begun.
        (tmp_path / ".backup.zip.database.partial-journal").write_bytes(bytes(512))

    said = done(house, "-c", _LITTLE_ROOM, "backup", str(archive), code=1)

    assert f"{archive}: no backup was made: " in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


# A backup during which another one into the same file is begun, once the database is being copied.
_TWO_BACKUPS = """
import os
import subprocess
import sys
from pathlib import Path

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "helmdash.settings"
django.setup()
from django.utils import timezone

from helmdash import conf
from helmdash.operations.backup import make_backup

second = []


def meanwhile(words):
    if words.startswith("copying ") and words != "copying the spool" and not second:
        command = [sys.executable, "manage.py", "backup", sys.argv[1]]
        second.append(subprocess.run(command, capture_output=True, text=True))


make_backup(Path(sys.argv[1]), env=conf.env(), now=timezone.now(), progress=meanwhile)
print(second[0].returncode, second[0].stderr, end="")
"""


def test_a_second_backup_into_the_same_file_is_refused_and_the_first_is_whole(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    """Each took the other's copy of a SQLite file for one that a killed backup had left."""
    house, archive = new_house("here", with_tables=True), tmp_path / "backup.zip"
    (tmp_path / ".backup.zip.partial").write_text("of one that was killed")

    said = done(house, "-c", _TWO_BACKUPS, str(archive))

    why = "another backup is being written there at this moment"
    assert said == f"1 CommandError: {archive}: no backup was made: {why}\n"
    with reading(archive, lambda words: None) as found:
        assert found.manifest.rows > 0
    assert list(tmp_path.glob(".*")) == []


def test_a_backup_replaces_a_file_and_nothing_else(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    """As root it took the place of /dev/null."""
    house, pipe, link = new_house("here", with_tables=True), tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")

    for path in (pipe, link):
        said = done(house, "manage.py", "backup", str(path), code=1)
        assert said == f"CommandError: {path} is no file: it would be replaced by the backup\n"

    assert pipe.is_fifo()
    assert link.is_symlink()


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_place_that_cannot_be_looked_at_is_one_line(
    new_house: Callable[..., House], tmp_path: Path, command: str
) -> None:
    """As in a directory of somebody else's."""
    path = tmp_path / ("x" * 300) / "backup.zip"

    said = done(new_house("here", with_tables=True), "manage.py", command, str(path), code=1)

    assert said == f"CommandError: {path}: {os.strerror(errno.ENAMETOOLONG)}\n"


def spoiled(archive: Path, bad: Path) -> Path:
    """The same archive, whole as an archive, with rows that no database takes."""
    with reading(archive, lambda words: None) as good, writing(bad) as other:
        for name in good.manifest.members:
            body = good.read(name)
            if name == DATABASE:
                body = body[:4096] + b"x" * (len(body) - 4096)
            elif name == f"{TABLES}records_project":
                body += b"no row\n"
            other.add(name, body)
        other.close(replace(good.manifest, members=other.members))
    return bad


@pytest.mark.parametrize("what", ["a pipe", "a device"])
def test_what_is_no_file_is_no_archive(what: str, tmp_path: Path) -> None:
    """Reading it would wait for ever, or never come to an end."""
    path = Path("/dev/zero") if what == "a device" else tmp_path / "pipe"
    if what == "a pipe":
        os.mkfifo(path)

    with pytest.raises(ArchiveProblem, match="no file"), reading(path, lambda _: None):
        pass


def test_a_restore_that_fails_leaves_what_was_there(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    house, archive = new_house("here", with_tables=True), tmp_path / "backup.zip"
    python(house, SEED)
    done(house, "manage.py", "backup", str(archive))
    # Tables of another version, as far as anybody can tell.
    python(house, _OTHER_VERSION)
    before = python(house, _NAMES)

    bad = spoiled(archive, tmp_path / "bad.zip")
    said = done(house, "manage.py", "restore", str(bad), "--force", code=1)

    assert said.count("\n") == 1
    assert python(house, _NAMES) == before
    assert "kept" in before
    assert "9999_later" in before

    done(house, "manage.py", "restore", str(archive), "--force")

    after = python(house, _NAMES)
    assert "kept" in after
    assert "9999_later" not in after


# `manage.py restore`, killed at its start, once it has its settings, or while it reads its archive.
_KILLED_RESTORE = """
import os
import signal
import sys
from pathlib import Path

import django

from helmdash import conf
from helmdash.cli.running import look_around


def killed(words=""):
    os.kill(os.getpid(), signal.SIGKILL)


when, archive = sys.argv[1:]
os.environ["DJANGO_SETTINGS_MODULE"] = "helmdash.settings"
look_around("restore", [archive])
if when == "at its start":
    killed()
django.setup()
if when == "with its settings":
    killed()
from helmdash.operations.backup import restore

restore(Path(archive), env=conf.env(), force=False, progress=killed)
"""


@pytest.mark.parametrize("when", ["at its start", "with its settings", "while it reads"])
def test_a_restore_that_was_killed_is_begun_anew(
    new_house: Callable[..., House], tmp_path: Path, when: str
) -> None:
    """The key that it had made was another one than the archive's, and lay in the way."""
    here, there = new_house("here", with_tables=True), new_house("there")
    archive = tmp_path / "backup.zip"
    done(here, "manage.py", "backup", str(archive))

    done(there, "-c", _KILLED_RESTORE, when, str(archive), code=-signal.SIGKILL)

    assert "Restored" in done(there, "manage.py", "restore", str(archive))
    assert key_of(there) == key_of(here)


def key_of(house: House) -> str:
    return (house.data_dir / "secret-key").read_text()


def test_a_restore_that_was_refused_goes_on_when_its_reason_is_gone(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    here, there = new_house("here", with_tables=True), new_house("there")
    archive = tmp_path / "backup.zip"
    done(here, "manage.py", "backup", str(archive))
    waiting = there.data_dir / "spool" / "a-000001.ndjson"
    waiting.parent.mkdir(parents=True)
    waiting.write_text("a line")

    said = done(there, "manage.py", "restore", str(archive), code=1)

    assert "a call that waits" in said
    # The key that the command made for itself is none of a database's.
    assert not (there.data_dir / "secret-key").exists()
    waiting.unlink()
    done(there, "manage.py", "restore", str(archive))
    key = (here.data_dir / "secret-key").read_text()
    assert (there.data_dir / "secret-key").read_text() == key


# -- the archive itself ------------------------------------------------------------------------


def test_a_restore_puts_all_of_an_archive_somewhere_or_nothing(
    new_house: Callable[..., House], tmp_path: Path
) -> None:
    """Operators lay the spool on a disk of its own, and mount keys."""
    here, there = new_house("here", with_tables=True), new_house("there")
    python(here, SEED)
    archive = tmp_path / "one.zip"
    done(here, "manage.py", "backup", str(archive))
    there.data_dir.mkdir(exist_ok=True)
    spool, key = there.data_dir / "spool", there.data_dir / conf.SECRET_KEY_FILE
    other_key, other_disk = tmp_path / "mounted", tmp_path / "disk"
    other_key.write_text("a-key-that-somebody-else-hands-out-0123456789abcdef", "ascii")

    for place, leads_to in ((spool, tmp_path / "nowhere"), (key, other_key)):
        place.unlink(missing_ok=True)  # a command makes a key where there is none
        place.symlink_to(leads_to)
        said = done(there, "manage.py", "restore", "--force", str(archive), code=1)
        assert str(place) in said
        assert "move it away" in said
        database = there.data_dir / "helmdash.sqlite3"
        assert there.database_url or not database.exists() or not database.stat().st_size
        place.unlink()

    other_disk.mkdir(mode=0o700)
    spool.symlink_to(other_disk)
    done(there, "manage.py", "restore", "--force", str(archive))
    assert spool.is_symlink()
    assert key.read_text("ascii") == (here.data_dir / conf.SECRET_KEY_FILE).read_text("ascii")
    assert "'kept'" in python(there, _NAMES)


def make_archive(path: Path, members: dict[str, bytes]) -> Path:
    with writing(path) as archive:
        for name, body in members.items():
            archive.add(name, body)
        archive.close(a_manifest(archive.members))
    return path


def a_manifest(members: dict[str, ArchiveMember], **over: Any) -> Manifest:
    given: dict[str, Any] = {
        "helmdash": "0",
        "made_at": "2026-11-22T00:00:00+00:00",
        "database": "sqlite",
        "release": 1,
        "migrations": {},
        "tables": {},
        "members": members,
    }
    return Manifest(**{**given, **over})


def read_all(path: Path) -> dict[str, bytes]:
    with reading(path, lambda words: None) as archive:
        return {name: archive.read(name) for name in archive.manifest.members}


MEMBERS = {"secret-key": b"abc", "spool/a.lock": b"", "spool/set-aside/a-1.ndjson": b"{}\n"}


def test_what_was_written_is_read_and_an_older_file_stays_until_then(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_text("older")

    def fail() -> None:
        with writing(path) as archive:
            archive.add("secret-key", b"abc")
            assert path.read_text() == "older"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]
    assert path.read_text() == "older"
    assert read_all(make_archive(path, MEMBERS)) == MEMBERS
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "/etc/passwd", "spool/../../evil", "spool/..", "spool/.hidden", "spool/a/b/c",
        "spool/a/../b", "spool\\\\evil", "tables/../x", "tables/x;drop", "x", "spool/", "C:evil",
        "database.sqlite3-wal",
    ],
)  # fmt: skip
def test_no_member_leads_out_of_its_place(tmp_path: Path, name: str) -> None:
    path = make_archive(tmp_path / "x.zip", {name: b"evil"})

    with pytest.raises(ArchiveProblem):
        read_all(path)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[60] ^= 0xFF
    path.write_bytes(bytes(body))


def add_one(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("spool/more.ndjson", "{}")


def say_twice(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("secret-key", "another")


def no_manifest(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("secret-key", "abc")


def odd_manifest(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", '{"format": 1, "members": []}')


def later_format(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", '{"format": 2}')


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [cut_short, flip, add_one, say_twice, no_manifest, odd_manifest, later_format, empty],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = make_archive(tmp_path / "x.zip", MEMBERS)
    damage(path)

    with pytest.raises(ArchiveProblem):
        read_all(path)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"database.sqlite3": b"x"}, "lacks secret-key"),
        ({"database.sqlite3": b"x", "secret-key": b"\n"}, "secret-key"),
        ({"database.sqlite3": b"x", "secret-key": b"\xff\xfe"}, "secret-key"),
        ({"secret-key": b"abc"}, "lacks database.sqlite3"),
    ],
)
def test_an_archive_without_a_part_is_refused_before_anything_is_changed(
    tmp_path: Path, members: dict[str, bytes], problem: str
) -> None:
    path = make_archive(tmp_path / "x.zip", members)

    with (
        reading(path, lambda words: None) as archive,
        pytest.raises(ArchiveProblem, match=problem),
    ):
        check_complete(archive)


ARCHIVES_KEY = b"the key of the archive"


def key_of_another_database(directory: Path) -> None:
    (directory / "secret-key").write_text("another key")


def calls_that_were_put_aside(directory: Path) -> None:
    (directory / "spool" / "set-aside").mkdir(parents=True)
    (directory / "spool" / "set-aside" / "damaged").write_text("a line")


def calls_that_wait(directory: Path) -> None:
    (directory / "spool").mkdir()
    (directory / "spool" / "a-000001.ndjson").write_text("a line")


@pytest.mark.parametrize(
    ("put", "found"),
    [
        (key_of_another_database, "another secret key in"),
        (calls_that_were_put_aside, "put aside"),
        (calls_that_wait, "a call that waits"),
    ],
)
def test_what_lies_beside_a_database_is_data_as_well(
    tmp_path: Path, put: Callable[[Path], None], found: str
) -> None:
    env = replace_env(data_dir=tmp_path, database_url="", secret_key="")
    assert find_data(env, key=ARCHIVES_KEY) is None

    put(tmp_path)

    assert found in (find_data(env, key=ARCHIVES_KEY) or "")


def test_locks_and_the_archives_own_key_are_no_data(tmp_path: Path) -> None:
    env = replace_env(data_dir=tmp_path, database_url="", secret_key="")
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "a.lock").touch()
    (tmp_path / "spool" / "a.spare").write_bytes(bytes(10))
    assert find_data(env, key=ARCHIVES_KEY) is None

    other = replace_env(data_dir=tmp_path / "other", database_url="", secret_key="")
    other.data_dir.mkdir()
    (other.data_dir / "secret-key").write_bytes(ARCHIVES_KEY + b"\n")
    assert find_data(other, key=ARCHIVES_KEY) is None


def replace_env(**over: object) -> conf.Env:
    return conf.env().model_copy(update=over)


def test_a_link_in_the_spool_is_not_followed_and_half_a_line_stays_behind(tmp_path: Path) -> None:
    outside, spool = tmp_path / "outside", tmp_path / "spool"
    spool.mkdir()
    outside.write_text("secret")
    (spool / "link.ndjson").symlink_to(outside)
    (spool / "a.lock").touch()
    (spool / "a-000001.ndjson").write_bytes(b'{"seq":1}\n{"seq":2}\n{"se' + bytes(4096))
    shutil.copytree(spool, tmp_path / "copy", symlinks=True)

    assert dict(copied(spool)) == {"a.lock": b"", "a-000001.ndjson": b'{"seq":1}\n{"seq":2}\n'}
