"""HelmDash from its wheel, in a virtualenv of its own, started in an empty folder."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from packaging.requirements import Requirement

from helmdash import __version__
from tests.support import ROOT, environment
from tests.support.processes import free_port, kill, spawn, stop, tail, wait_for_http
from tests.support.wheel import build_wheel, install_wheel

# Set in a developer's shell, at most, or for the tests.
_OF_DEVELOPERS = {
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV", "XDG_DATA_HOME"),
    "SSL_CERT_FILE",
}
# All is compiled and made then.
_FIRST_START_SECONDS = 150


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A person's machine: the folder they are in, their home, and the command they have."""

    folder: Path
    home: Path
    command: Path
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        clean = environment.clean()
        person = {name: value for name, value in clean.items() if name not in _OF_DEVELOPERS}
        return {**person, "HOME": str(self.home), "PORT": str(self.port)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.command, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    commands = install_wheel(wheel, tmp_path_factory.mktemp("venv"))
    return Installed(
        folder=tmp_path_factory.mktemp("empty"),
        home=tmp_path_factory.mktemp("home"),
        command=commands / "helmdash",
        port=free_port(),
    )


@pytest.fixture(scope="module")
def said(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that runs; what it printed."""
    log = tmp_path_factory.mktemp("log") / "log"
    command, where = str(installed.command), installed.environment
    process = spawn(command, "up", cwd=installed.folder, log=log, env=where)
    try:
        url = f"{installed.base_url}/healthz"
        wait_for_http(url, process=process, log=log, seconds=_FIRST_START_SECONDS)
        yield tail(log)
        assert stop(process) == 0, tail(log)
    finally:
        kill(process)


def test_the_wheel_holds_all_that_is_shipped_and_no_test(wheel: Path) -> None:
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        told = message_from_bytes(packed.read(f"helmdash-{__version__}.dist-info/METADATA"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shipped = [*ROOT.glob("templates/**/*"), *ROOT.glob("static/**/*"), *ROOT.glob("fixtures/*.*")]

    missing = {
        f"helmdash/shipped/{path.relative_to(ROOT).as_posix()}"
        for path in shipped
        if path.is_file()
    } - set(names)
    assert missing == set(), "name them in pyproject.toml, tool.hatch.build.targets.wheel"
    assert {name.partition("/")[0] for name in names} == {
        "helmdash",
        f"helmdash-{__version__}.dist-info",
    }
    assert [name for name in names if "test" in name.rpartition("/")[2]] == []
    assert told["Version"] == __version__
    wanted = {Requirement(line) for line in told.get_all("Requires-Dist", [])}
    assert {each for each in wanted if "extra" not in str(each.marker)} == {
        Requirement(line) for line in project["dependencies"]
    }


def test_started_in_an_empty_folder_it_leads_from_the_first_page_to_the_first_call(
    installed: Installed, said: str
) -> None:
    link = re.search(r"http://\S+/login/link/\S+", said)
    key = re.search(r"API key +(hd_\S+)", said)
    assert link is not None
    assert key is not None
    assert f"HelmDash {__version__}" in said
    assert ".venv" not in said
    assert str(installed.home / ".local/share/helmdash/helmdash.sqlite3") in said

    with httpx.Client(base_url=installed.base_url, follow_redirects=True) as person:
        form = person.get(link[0])
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        assert token is not None
        first = person.post(link[0], data={"csrfmiddlewaretoken": token[1]})
        assert "Waiting for the first call" in first.text
        for page in (first, person.get("/admin/"), person.get("/api/v1/docs")):
            sheets = re.findall(r'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page.text)
            assert sheets, page.url
            assert {person.get(sheet).status_code for sheet in sheets} == {200}

        snippet = said[said.index("  curl ") : said.index("Ctrl-C")]
        done = subprocess.run(["sh", "-c", snippet], capture_output=True, text=True, check=True)
        assert '"level":"healthy"' in done.stdout.replace(" ", "")
        assert f"Bearer {key[1]}" in snippet

        assert "hello" in person.get("/conversations/").text
        assert "openai/gpt-4o" in person.get("/budgets/?model=openai/gpt-4o").text
        installed.run("demo", "load")
        assert "Demo" in person.get("/settings/").text
    assert list(installed.folder.iterdir()) == []


def test_it_names_its_release_and_its_commands(installed: Installed, said: str) -> None:
    assert installed.run("--version") == f"{__version__}\n"
    # The same where no folder of commands is on the PATH.
    python = installed.command.parent / "python"
    module = replace(installed, command=python)
    assert module.run("-m", "helmdash", "--version") == f"{__version__}\n"
    assert module.run("-m", "helmdash", "member", "--help").startswith("usage: helmdash member")
    asked = httpx.get(f"{installed.base_url}/api/v1/calls")
    assert "`helmdash apikey create --name NAME`" in asked.json()["detail"]
