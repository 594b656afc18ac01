"""The doctor: says what a maintainer needs, names what is wrong, tells no secret and no text."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from helmdash import conf, places
from helmdash.cli import examining
from helmdash.operations.access import members
from helmdash.records.access.secrets import seal
from helmdash.records.models import Job, Project, RecorderLedger, SchemaMark, Upstream
from tests.factories import NOW, make_capture, make_key, make_project, record
from tests.support.certificates import certificate, issued_certificate
from tests.support.processes import free_port

SECRETS = (
    "a-header-9",
    "sk-of-a-provider",
    "a-bootstrap-key-9",
    "a-password-9",
    "what somebody asked",
)


@pytest.fixture
def examine(
    db: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., tuple[int, dict[str, Any], str]]]:
    """A function that calls the doctor: exit code, findings by name, all that was printed."""
    monkeypatch.setenv("HELMDASH_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("HELMDASH_SECRET_KEY", raising=False)
    conf.env.cache_clear()
    members.ensure_admin(password="a-password-9")
    # The database of a test run is not the one that the environment names.
    schema = places.Schema(is_empty=False, release=places.SCHEMA_RELEASE, oldest_code=0)
    monkeypatch.setattr(places, "look_at_schema", lambda env, **_: schema)

    def run() -> tuple[int, dict[str, Any], str]:
        code = 0
        try:
            call_command("doctor", "--json")
        except SystemExit as ended:
            code = int(ended.code or 0)
        told = capsys.readouterr().out
        found = json.loads(told)
        assert found["ok"] == (code == 0)
        return code, {f"{f['subject']} {f['name']}": f for f in found["findings"]}, told

    yield run
    monkeypatch.undo()
    conf.env.cache_clear()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with secrets in them."""
    monkeypatch.setenv("HELMDASH_BOOTSTRAP_API_KEY", "a-bootstrap-key-9")
    monkeypatch.setenv("HELMDASH_ADMIN_PASSWORD", "a-password-9")
    monkeypatch.setenv("HELMDASH_OTLP_EXPORT_HEADERS", "Authorization=Bearer%20a-header-9")
    monkeypatch.setenv("HELMDASH_WORKER", "2")


def test_a_proxy_that_other_programs_use_is_named_and_said_to_be_unused(
    environment: None, examine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a network lets out through it alone, every upstream is unreachable."""
    monkeypatch.setenv("https_proxy", "http://me:proxy-secret@proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "")

    _, found, told = examine()

    assert found["setting https_proxy"]["value"] == "not used: connections go out directly"
    assert "setting HTTP_PROXY" not in found
    assert "proxy-secret" not in told


def test_all_is_told_and_nothing_that_is_secret(
    environment: None, examine: Callable[..., Any]
) -> None:
    project = make_project()
    Project.objects.update(payload="full")
    record(make_capture(content="what somebody asked", http_status=503, status="error"))
    key = make_key()
    Upstream.objects.create(
        name="gone", kind="openai", base_url=f"http://127.0.0.1:{free_port()}/v1",
        key_encrypted=seal("sk-of-a-provider"), allow_private=True,
    )  # fmt: skip

    code, found, told = examine()

    assert not [secret for secret in (*SECRETS, key) if secret in told]
    kind = "PostgreSQL" if connection.vendor == "postgresql" else "SQLite"
    assert found["database kind"]["value"].startswith(kind)
    assert found["database migrations to come"]["value"] == "none"
    assert found["setting HELMDASH_ADMIN_PASSWORD"]["value"] == "***"
    assert "HELMDASH_WORKERS" in found["setting unknown"]["value"]
    assert (found["records calls"]["value"], found["records keys"]["value"]) == ("1", "1")
    assert found["records people"]["value"] == "1"
    assert found["upstream gone"]["value"] == "openai, with a key"
    # The only thing that is wrong here.
    assert code == 1
    assert [name for name, each in found.items() if each["problem"]] == ["upstream gone"]
    assert project.slug not in found["upstream gone"]["problem"]


def test_that_there_is_no_upstream_is_told_and_is_no_fault(examine: Callable[..., Any]) -> None:
    """A reader whose gateway answers 404 looks for it here; silence looks like all is well."""
    code, found, _ = examine()

    assert code == 0
    assert "environment of this command" in found["upstream none"]["value"]


def test_an_upstream_that_no_call_may_go_to_is_wrong_although_it_is_there(
    examine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before it is connected to; that its host is alive says nothing."""
    make_project()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.168.77.5:8000/v1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        for name, allows in (("closed", False), ("open", True)):
            Upstream.objects.create(name=name, kind="openai", base_url=url, allow_private=allows)

        code, found, _ = examine()

    problems = {name: each["problem"] for name, each in found.items() if each["problem"]}
    assert code == 1
    assert set(problems) == {"upstream openai", "upstream closed"}
    assert all(each.startswith("cannot be called: ") for each in problems.values())
    assert "HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1" in problems["upstream openai"]
    assert "HELMDASH_" not in problems["upstream closed"]


@contextmanager
def shaking_hands(public: Path, private: Path) -> Iterator[str]:
    """The URL of a server that does no more than TLS."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, private)

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with server.accept()[0] as accepted, suppress(OSError):
                    accepted.settimeout(5)
                    tls.wrap_socket(accepted, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_an_upstream_is_wrong_whose_certificate_no_call_would_trust(
    examine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_project()
    (tmp_path / "own").mkdir()
    authority, public, private = issued_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with (
        shaking_hands(public, private) as trusted,
        shaking_hands(*certificate(tmp_path / "own")) as unknown,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        mute = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        monkeypatch.setattr(examining, "_CONNECT_SECONDS", 0.5)
        for name, url in (("company", trusted), ("unknown", unknown), ("mute", mute)):
            Upstream.objects.create(name=name, kind="openai", base_url=url, allow_private=True)

        _, found, _ = examine()

    problems = {name: each["problem"] for name, each in found.items() if each["problem"]}
    assert set(problems) == {"upstream unknown", "upstream mute"}
    told = problems["upstream unknown"]
    assert told.startswith("cannot be trusted: ")
    assert "self-signed certificate" in told
    assert "SSL_CERT_FILE" in told
    assert problems["upstream mute"].startswith("cannot be reached: ")


def test_a_sound_house_ends_with_zero(examine: Callable[..., Any]) -> None:
    make_project()

    code, found, _ = examine()

    assert (code, [name for name, each in found.items() if each["problem"]]) == (0, [])


def key_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    conf.secret_key(conf.env())
    (conf.env().data_dir / conf.SECRET_KEY_FILE).chmod(0o644)


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    small = shutil._ntuple_diskusage(10**12, 10**12 - 5, 5)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: small)


def older_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = places.Schema(is_empty=False, release=None)
    monkeypatch.setattr(places, "look_at_schema", lambda env, **_: schema)


def calls_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.utils import timezone

    now = timezone.now()
    RecorderLedger.objects.create(name="p", started_at=now, seen_at=now, dropped=3)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (key_for_all, "data secret key"),
        (full_disk, "data free"),
        (older_tables, "database tables"),
        (calls_dropped, "recorder dropped"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_one(
    examine: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[pytest.MonkeyPatch], None],
    name: str,
) -> None:
    make_project()
    spoil(monkeypatch)

    code, found, _ = examine()

    assert code == 1
    assert [each for each in found if found[each]["problem"]] == [name]


def test_what_was_dropped_long_ago_is_told_and_no_fault_of_today(
    examine: Callable[..., Any],
) -> None:
    make_project()
    RecorderLedger.objects.create(name="p", started_at=NOW, seen_at=NOW, stopped_at=NOW, dropped=3)

    code, found, _ = examine()

    assert (code, found["recorder dropped"]["value"]) == (0, "3")


def test_migrate_has_noted_the_release(db: None) -> None:
    assert list(SchemaMark.objects.values_list("release", "oldest_code")) == [
        (places.SCHEMA_RELEASE, places.OLDEST_CODE)
    ]


def test_a_job_that_fails_is_named_with_who_failed(examine: Callable[..., Any]) -> None:
    Job.objects.create(name="retention", holder="west-4711", failures=2, told="OSError")
    Job.objects.create(name="rollups", holder="west-4711", outcome="done", ended_at=NOW)

    code, found, _ = examine()

    assert code == 1
    assert [name for name, each in found.items() if each["problem"]] == ["job retention"]
    assert "2 failures in a row" in found["job retention"]["problem"]
    assert found["job rollups"]["value"] == f"done {NOW:%Y-%m-%d %H:%M} UTC"


def test_files_of_the_spool_that_cannot_be_read_are_a_problem_with_a_way_out(
    examine: Callable[..., tuple[int, dict[str, Any], str]], tmp_path: Path
) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "host-1-now.lock").write_text("a.ndjson is not an ordinary file\n")

    code, found, _ = examine()

    assert code == 1
    assert found["data stuck files"]["value"] == f"{tmp_path}/spool/host-1-now*"
    assert found["data stuck files"]["problem"].startswith(
        "a.ndjson is not an ordinary file. Calls may"
    )
    assert "restart the server" in found["data stuck files"]["problem"]
