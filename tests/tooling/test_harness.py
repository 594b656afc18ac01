"""The things the suite stands on really stand: each is used once for what it is for."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import openai
import psycopg
import pytest
from django.db import connection

from tests.support import ROOT, lean, needs
from tests.support.browser import BrowserPage
from tests.support.environment import database
from tests.support.model import LocalModel
from tests.support.postgres import NoPostgres, Postgres, find_binaries
from tests.support.processes import free_port, kill, run_python, spawn_python
from tests.support.server import Served
from tests.support.sharing_out import group_of

_CHILD = """
import atexit, json, os, signal, sys
atexit.register(sys.stderr.write, "bye")
print(json.dumps({
    "argv": sys.argv[1:], "name": __name__, "env": dict(os.environ), "at": os.getcwd(),
    "settings": "django.conf" in sys.modules and sys.modules["django.conf"].settings.configured,
    "leads": os.getsid(0) == os.getpid(), "stdin": sys.stdin.read(),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
}))
sys.exit(3)
"""
# For what takes a second of CPU: a test fails by what it finds, not by how busy the machine is.
_SECONDS = 120
_PAGE = "data:text/html,<html lang=en><title>t</title><main><h1>{}</h1></main>"


def test_a_free_port_is_given_to_nobody_else() -> None:
    first = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        found = [first, *(free_port() for _ in range(20))]

        assert taken.getsockname()[1] not in found
    assert len(set(found)) == len(found)
    # From there on Linux gives ports to whoever connects.
    assert max(found) < 32_768


def test_no_test_has_a_use_for_the_fixtures_that_are_left_out(
    request: pytest.FixtureRequest,
) -> None:
    own = {Path(lean.__file__), Path(__file__)}
    files = {*(ROOT / "tests").rglob("*.py"), *(ROOT / "helmdash").glob("settings*.py")} - own
    texts = {path: path.read_text("utf-8") for path in (*files, ROOT / "pyproject.toml")}
    words = re.compile("|".join(map(re.escape, lean.UNUSED.values())))

    assert [path for path, text in texts.items() if words.search(text)] == []
    assert not lean.UNUSED.keys() & set(request.fixturenames)
    # Else nothing would be left out.
    assert lean.UNUSED.keys() <= set(request.session._fixturemanager._arg2fixturedefs)


def test_the_arguments_of_the_same_code_are_asked_for_once() -> None:
    asked: list[object] = []

    def names_of(function: object, **_: object) -> tuple[str, ...]:
        asked.append(function)
        return ("a", "b")

    names = lean._remembering(names_of)
    one, other = (lambda a, b: None for _ in range(2))

    assert names(one, name="x") == names(other, name="x") == ("a", "b")
    assert asked == [one]
    # Of a class's function the first argument is left out: by whom, its code does not say.
    assert names(one, name="x", cls=Path) == ("a", "b")
    assert asked == [one, one]


def test_postgres_starts_below_a_directory_that_only_its_owner_may_enter(tmp_path: Path) -> None:
    # pytest's own temporary directories have mode 700; under root that keeps `nobody` out.
    try:
        install = find_binaries().parent
    except NoPostgres as error:
        needs.missing("PostgreSQL", str(error))
    copy = tmp_path / install.parent.name / install.name
    shutil.copytree(install, copy, symlinks=True)
    for libraries in install.parent.parent.glob(f"{install.parent.name}.libs"):
        shutil.copytree(libraries, tmp_path / libraries.name)

    server = Postgres.start(copy / "bin")
    try:
        with psycopg.connect(server.url("postgres")) as session:
            row = session.execute("SELECT lower('ÄÖ'), current_setting('fsync')").fetchone()
    finally:
        server.stop()

    assert row == ("äö", "off")
    if os.geteuid() == 0:
        assert server.binaries.is_relative_to(server.home), "a copy that `nobody` can read"
    assert not server.home.exists()


@pytest.mark.django_db
def test_the_suite_runs_on_the_database_that_was_asked_for() -> None:
    assert connection.vendor == {"sqlite": "sqlite", "postgres": "postgresql"}[database()]


def test_a_server_that_was_killed_comes_back_with_its_data(serve: Callable[..., Served]) -> None:
    served = serve()
    before = httpx.get(f"{served.base_url}/api/v1/budgets", headers=served.headers)

    served.kill()
    served.start()
    after = httpx.get(f"{served.base_url}/api/v1/budgets", headers=served.headers)

    assert (before.status_code, after.status_code) == (200, 200)
    assert before.json() == after.json()
    # uvicorn finishes its work and then lets the signal end it.
    assert served.stop() in {0, -signal.SIGTERM}


@pytest.mark.parametrize("start", [("-c", _CHILD), ("script.py",)], ids=["code", "script"])
def test_a_process_is_the_same_forked_or_not(tmp_path: Path, start: tuple[str, ...]) -> None:
    (tmp_path / "script.py").write_text(_CHILD)
    arguments = [str(tmp_path / each) if each.endswith(".py") else each for each in (*start, "x y")]
    env = {"HERE": "ä", "PATH": os.defpath, "LC_ALL": "C.UTF-8"}

    cold = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    forked = run_python(*arguments, env=env, timeout=_SECONDS)

    said = json.loads(cold.stdout)
    assert json.loads(forked.stdout) == {**said, "leads": True}
    assert (forked.stderr, forked.returncode) == (cold.stderr, cold.returncode) == ("bye", 3)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "HELMDASH_DEBUG": "true",
            "HELMDASH_PUBLIC_URL": "https://helm.example",
            "HELMDASH_MAX_BODY_BYTES": "100000",
            "HELMDASH_LOG_LEVEL": "DEBUG",
            "DATABASE_URL": "postgres://one:two@db.example:6543/three",
            "HELMDASH_SMTP_URL": "smtp://mail.example",
        },
        {"HELMDASH_RETAIN_HOUR": "soon"},
    ],
    ids=["none", "many", "bad"],
)
def test_a_forked_process_reads_its_own_settings(tmp_path: Path, given: dict[str, str]) -> None:
    code = """
import logging, django
django.setup()
from django.conf import settings
from django.db import connections
from helmdash import conf
told = {name: getattr(settings, name) for name in dir(settings) if name.isupper()}
told |= {"logs": logging.getLogger("helmdash").level, "database": connections["default"].vendor}
print(told, conf.env())
"""
    env = {
        **given,
        "PATH": os.defpath,
        "DJANGO_SETTINGS_MODULE": "helmdash.settings",
        "HELMDASH_DATA_DIR": str(tmp_path),
        "HELMDASH_SECRET_KEY": "of this test",
    }

    cold = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    forked = run_python("-c", code, env=env, timeout=_SECONDS)

    addresses = re.compile(" at 0x[0-9a-f]+")
    assert addresses.sub("", forked.stdout) == addresses.sub("", cold.stdout)
    assert (forked.stderr, forked.returncode) == (cold.stderr, cold.returncode)
    assert (cold.returncode == 0) == (given.keys() != {"HELMDASH_RETAIN_HOUR"})


def test_chance_takes_another_course_in_each_fork() -> None:
    code = "from helmdash.gateway.requests.request import _chance; print(_chance.getrandbits(64))"

    drawn = {
        run_python("-c", code, env={"PATH": os.defpath}, timeout=_SECONDS).stdout for _ in range(2)
    }

    assert len(drawn) == 2


def test_a_forked_process_can_be_awaited_and_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = spawn_python(
        "-c", "import time; print('up', flush=True); time.sleep(60)", log=log, forked=True
    )

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)

    assert process.poll() is None
    assert kill(process) == -signal.SIGKILL == process.poll()


def test_a_run_that_is_asked_to_end_twice_stops_what_it_started() -> None:
    code = """
import os, signal
from tests.support.environment import end_when_asked
end_when_asked()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    print("stopped")
"""
    done = run_python("-c", code, env={"PATH": os.defpath}, timeout=_SECONDS)

    assert (done.stdout, done.returncode) == ("stopped\n", 0), done.stderr


def test_a_vendors_sdk_is_loaded_when_it_is_used_and_not_when_it_is_collected() -> None:
    # What pytest and hypothesis ask of whatever a test module imports.
    code = """
import contextlib, json, sys
from tests.support.postponed import postpone
postpone("ollama")
import ollama
loaded = lambda: "ollama._client" in sys.modules
told = [getattr(ollama, "__test__", None), getattr(ollama, "__file__", None)]
with contextlib.suppress(TypeError):
    issubclass(ollama, Exception)
print(json.dumps([told, loaded(), ollama.Client.__name__, loaded()]))
"""
    done = run_python("-c", code, env={"PATH": os.defpath}, timeout=_SECONDS)

    assert json.loads(done.stdout) == [[None, None], False, "Client", True], done.stderr


@pytest.mark.browser
def test_one_worker_has_the_browser(request: pytest.FixtureRequest) -> None:
    assert group_of(request.node) == "browser"


@pytest.mark.browser
def test_chromium_shows_a_page_without_problems(browser_page: BrowserPage) -> None:
    browser_page.goto(_PAGE.format("all is well"))

    assert browser_page.text_content("h1") == "all is well"
    assert browser_page.accessibility() == []
    assert browser_page.problems() == []


@pytest.mark.browser
def test_a_page_reports_errors_and_requests_to_other_hosts(browser_page: BrowserPage) -> None:
    browser_page.goto(
        "data:text/html,<meta http-equiv=Content-Security-Policy content=\"style-src 'none'\">"
        "<style>p{}</style><img src=http://elsewhere.test/x.png>"
        "<script>console.error('lost'); throw new Error('torn')</script>"
    )

    problems = "\n".join(browser_page.problems())
    for expected in ("lost", "torn", "CSP style-src", "another host: http://elsewhere.test/x.png"):
        assert expected in problems
    assert any(line.startswith("image-alt") for line in browser_page.accessibility())


_CONTENT = "<html lang=en><title>t</title><main><h1>t</h1>{}</main>"
# A look that is well: what comes after it is told by what differs.
_WELL = "<p style='color: #333'>well</p>"
_PLACED = "position: absolute; top: 0; left: 0; width: 9em; height: 2em; margin: 0"
_MOVED = "position: relative; top: -3em; margin: 0"


@pytest.mark.browser
@pytest.mark.parametrize(
    "faulty",
    [
        "<p style='color: #bbb'>pale</p>",
        "<div style='background: #222'><p style='color: #333'>on dark</p></div>",
        "<div style='opacity: .4'><p style='color: #333'>faded</p></div>",
        "<p style='color: #333; background: rgba(0, 0, 0, .7)'>half seen through</p>",
        "<div style='background: linear-gradient(red, red)'><p style='color: #bbb'>x y</p></div>",
        f"<hr style='{_PLACED}; background: #222'><p style='{_PLACED}; color: #333'>above</p>",
        f"<hr style='background: #222; height: 4em'><p style='{_MOVED}; color: #333'>above</p>",
        "<style>@media (prefers-color-scheme: dark) {html {background: #222}}</style>",
    ],
)  # fmt: skip
def test_a_pale_text_is_found_however_often_the_like_of_it_was_well(
    new_page: Callable[..., BrowserPage], faulty: str
) -> None:
    page = new_page(color_scheme="light")
    for _ in range(2):
        page.set_content(_CONTENT.format(_WELL))
        assert page.accessibility() == []
        page.set_content(_CONTENT.format(_WELL + faulty))
        page.emulate_media(color_scheme="dark" if "dark)" in faulty else "light")

        found = page.accessibility(colours_alone=True)

        assert [line.split()[0] for line in found] == ["color-contrast"], found
        page.emulate_media(color_scheme="light")


@pytest.mark.browser
def test_a_page_can_be_dark_and_narrow(new_page: Callable[..., BrowserPage]) -> None:
    page = new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")

    page.goto(_PAGE.format("x"))

    query = "[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]"
    assert page.evaluate(query) == [390, True]


def test_no_event_loop_is_left_running_by_another_test() -> None:
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"


@pytest.mark.model
def test_the_local_model_answers_the_openai_sdk(local_model: LocalModel) -> None:
    client = openai.OpenAI(base_url=local_model.base_url, api_key="none", max_retries=0)

    with client:
        reply = client.chat.completions.create(
            model=local_model.name,
            messages=[{"role": "user", "content": "Say hello."}],
            max_tokens=8,
            temperature=0,
            seed=1,
        )

    assert reply.choices[0].message.content
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens <= 8
