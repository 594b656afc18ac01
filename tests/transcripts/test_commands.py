"""The two commands: on the user's machine against a running HelmDash, and on the server's own."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from helmdash.queries.calls import calls
from helmdash.transcripts.archive import build_archive
from tests.factories import make_project
from tests.support.server import Served
from tests.transcripts.homes import CALLS, SESSION, claude_line, make_home, write_lines


@pytest.mark.one_database
def test_the_archive_that_the_dashboard_serves_brings_a_home_into_it(
    served: Served, tmp_path: Path
) -> None:
    answer = httpx.get(f"{served.base_url}/connect/helmdash.pyz")
    archive, home = tmp_path / "helmdash.pyz", make_home(tmp_path / "home")
    archive.write_bytes(answer.content)
    command = [sys.executable, "-I", str(archive), "import", "--home", str(home)]
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "HELMDASH_URL": served.base_url,
        "HELMDASH_API_KEY": served.headers["Authorization"].removeprefix("Bearer "),
    }

    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        for _ in range(2)
    )

    assert (first.returncode, first.stderr) == (0, "")
    table = {line.split()[0]: line.split() for line in first.stdout.splitlines()}
    assert table["claude"][1:7] == ["4", "5", "11", "1", "11", "0"]
    assert "claude: 4 of the files had not changed since last time" in second.stdout
    stored = httpx.get(
        f"{served.base_url}/api/v1/calls/anthropic:req_agent", headers=served.headers
    ).json()
    assert stored["routes"] == ["transcript"]
    assert stored["conversation"] == f"{SESSION}:a1"
    assert stored["client"] == {"name": "claude-code", "version": "2.1.197"}
    assert stored["usage"]["prompt_tokens"] == 110
    # Nothing was left in an agent's own folder.
    assert not list((tmp_path / ".claude").glob("*"))


@pytest.mark.django_db
def test_what_the_project_keeps_no_longer_is_left_out_and_counted(tmp_path: Path) -> None:
    project, home, said = make_project(retention_days=1), make_home(tmp_path), StringIO()

    call_command("import_sessions", home=home, project=project.slug, stdout=said)

    assert "claude: 11 calls older than the project keeps left out" in said.getvalue()
    assert "not taken" not in said.getvalue()
    assert calls.stored_ids(project_id=project.id, ids=[key for _, key, *_ in CALLS]) == set()


@pytest.mark.django_db
def test_the_servers_own_command_stores_each_call_once(tmp_path: Path) -> None:
    project, home = make_project(), make_home(tmp_path)
    said = [StringIO(), StringIO()]

    for out in said:
        call_command("import_sessions", home=home, project=project.slug, stdout=out)

    assert "opencode" in said[0].getvalue()
    stored = calls.stored_ids(project_id=project.id, ids=[key for _, key, *_ in CALLS])
    assert set(stored) == {key for _, key, *_ in CALLS}
    # The client's own compaction opened a round.
    found = [
        calls.find(project_id=project.id, call_id=f"anthropic:req_{name}")
        for name in ("three", "four")
    ]
    assert [call and call.call.round_number for call in found] == [1, 2]
    totals = [line.split()[-2:] for line in said[1].getvalue().splitlines()[1:8]]
    assert {new for new, _ in totals} == {"0"}
    assert sum(int(known) for _, known in totals) == len(CALLS)


@pytest.mark.one_database
@pytest.mark.django_db
def test_an_import_that_is_interrupted_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = make_project(), make_home(tmp_path)
    monkeypatch.setattr("helmdash.transcripts.importing.MAX_BATCH", 2)
    told = 0

    def interrupt(_bar: object, _progress: object) -> None:
        nonlocal told
        told += 1
        if told == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("helmdash.transcripts.telling.ProgressBar.__call__", interrupt)
        with pytest.raises(CommandError, match="stopped; ") as ended:
            call_command("import_sessions", home=home, project=project.slug, stdout=StringIO())
    ids = [key for _, key, *_ in CALLS]
    before = calls.stored_ids(project_id=project.id, ids=ids)
    call_command("import_sessions", home=home, project=project.slug, stdout=StringIO())

    assert ended.value.returncode == 130
    assert 0 < len(before) < len(ids)
    assert set(calls.stored_ids(project_id=project.id, ids=ids)) == set(ids)


@pytest.mark.django_db
def test_a_call_that_is_not_taken_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    line = {**claude_line("late"), "timestamp": "2999-01-01T00:00:00Z"}
    path = write_lines(tmp_path / ".claude/projects/p/s.jsonl", [claude_line("good"), line])
    out = StringIO()

    with pytest.raises(CommandError, match="some calls were not taken"):
        call_command("import_sessions", home=tmp_path, project=make_project().slug, stdout=out)

    assert f"claude: not taken: {path}:2: started_at" in out.getvalue()
    assert out.getvalue().splitlines()[1].split()[-2:] == ["1", "0"]


@pytest.mark.one_database
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agents": "claude,emacs"}, "No reader of emacs; there are: claude, codex"),
        ({"project": "nowhere"}, "there is no project called nowhere"),
        ({"home": Path("/no/such/folder")}, "--home: /no/such/folder is no folder"),
    ],
)
def test_what_cannot_be_done_is_said(options: dict[str, object], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("import_sessions", **options)


@pytest.mark.one_database
@pytest.mark.django_db
def test_everybody_may_have_the_archive(client: Client) -> None:
    answer = client.get("/connect/helmdash.pyz")

    assert answer.content == build_archive()
    assert answer["Content-Disposition"] == 'attachment; filename="helmdash.pyz"'
    again = client.get("/connect/helmdash.pyz", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304
    assert client.post("/connect/helmdash.pyz").status_code in (403, 405)
