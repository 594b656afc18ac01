"""Fixtures of the whole suite; what they stand on is in tests/support.

HELMDASH_TEST_DB=sqlite|postgres chooses the database (sqlite by default).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.support import chromium, environment, golden, needs
from tests.support.browser import BrowserPage, SharedBrowser
from tests.support.emptying import empty_instead_of_flushing
from tests.support.laws import try_few
from tests.support.lean import be_lean
from tests.support.model import LocalModel, NoModel, find_weights, run_model
from tests.support.postponed import postpone
from tests.support.server import Served
from tests.support.serving import Servers
from tests.support.stack import RunWithRoom
from tests.support.statements import case_of, function_of, read_list
from tests.support.template import copy_tables, template_database
from tests.support.workers import take_over

# Here and not in a hook: a conftest.py below may import models.
environment.prepare()
# Before any test module is imported.
postpone("anthropic", "google.genai", "ollama", "openai")
empty_instead_of_flushing()

# Say nothing of the database that a run is on: formats and sockets, or databases of their own.
# Nor does a test with none of the fixtures below: pytest-django keeps it from any database.
_ON_ONE_DATABASE = frozenset(
    {
        *("core", "providers", "upstream"),
        *(f"gateway/test_{name}_sdk.py" for name in ("openai", "anthropic", "gemini", "ollama")),
        *(f"gateway/test_{name}.py" for name in ("crosswise", "streams", "edges", "simulations")),
        *(f"gateway/test_{name}.py" for name in ("snippets", "long_task", "large_requests")),
        *(f"gateway/test_{name}.py" for name in ("background", "stopping", "causes")),
        *(f"gateway/test_{name}.py" for name in ("hostile_replies", "local_models", "care_shapes")),
        *(f"cli/test_{name}.py" for name in ("bad_places", "ollama_smoke", "move")),
        "mcp/test_resources.py",
        "tooling",
        *(f"doors/test_{name}.py" for name in ("wire", "lost")),
        "recorder/test_outages.py",
        "server/test_limits.py",
        "server/test_installed.py",
    }
)
_WITH_DATABASE = {"db", "transactional_db", "serve", "new_house"}
_browser = SharedBrowser()
_servers = Servers()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden", action="store_true", help="write tests/golden anew (make golden)"
    )
    parser.addoption(
        "--second-database",
        action="store_true",
        help="leave out, unread, what says nothing of the database (make test, on PostgreSQL)",
    )
    parser.addoption(
        "--leave-out-said-elsewhere",
        action="store_true",
        help="and the tests that ask of it what others ask (tests/support/statements.py)",
    )
    parser.addoption(
        "--whole-laws",
        action="store_true",
        help="as many examples of each law as it says (tests/support/laws.py)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--second-database") or collection_path.is_dir():
        return None
    inside = collection_path.relative_to(config.rootpath / "tests")
    return True if {inside.as_posix(), inside.parts[0]} & _ON_ONE_DATABASE else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # ARGS of `make test` go to both runs: nothing to do in the second one is no failure.
    nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if nothing and session.config.getoption("--second-database"):
        session.exitstatus = pytest.ExitCode.OK


# Before xdist's own.
@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    take_over(config)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_servers)
    config.pluginmanager.register(RunWithRoom())


def pytest_report_header() -> str:
    return f"helmdash database: {environment.database()}"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    be_lean(session)
    # 880,000 objects that are here to stay: each full look for garbage among them takes 0.5 s.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # One request of a test makes more than the 700 new objects of the default.
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


# First, because xdist's own hook reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--second-database"):
        elsewhere = read_list() if config.getoption("--leave-out-said-elsewhere") else frozenset()
        wanted = [item for item in items if _tells_of_database(item, elsewhere)]
        config.hook.pytest_deselected(items=[*set(items).difference(wanted)])
        items[:] = wanted
    if not config.getoption("--whole-laws"):
        try_few(items)
    for item in items:
        # One worker has the model, which would take both cores on each; and one the browser.
        for outside in ("browser", "model"):
            if item.get_closest_marker(outside):
                item.add_marker(pytest.mark.xdist_group(outside))
        # And one a server that tests share: each would start its own, and keep it to the end.
        fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
        if "serve" in fixtures and not item.get_closest_marker("xdist_group"):
            name = item.path.parent.name if "world" in fixtures else "served"
            item.add_marker(pytest.mark.xdist_group(name))


def _tells_of_database(item: pytest.Item, elsewhere: frozenset[str]) -> bool:
    ids = (function_of(item.nodeid), case_of(item.nodeid))
    if item.get_closest_marker("one_database") or not elsewhere.isdisjoint(ids):
        return False
    fixtures = set(item.fixturenames) if isinstance(item, pytest.Function) else set()
    return bool(fixtures & _WITH_DATABASE or item.get_closest_marker("django_db"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in needs.summary(terminalreporter.getreports("skipped")):
        terminalreporter.write_line(line, red=True, bold=True)


def pytest_sessionstart() -> None:
    environment.check()
    # Not above: it imports models.
    from tests.support.known_tables import build_tables_once

    build_tables_once()


def pytest_unconfigure() -> None:
    environment.finish()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Give each worker its tables from the template: thirty migrations take 4 s of CPU."""
    testing = connection.settings_dict["TEST"]
    run, given = Path(os.environ["HELMDASH_DATA_DIR"]), environment.clean()
    if environment.database() == "postgres":
        testing["TEMPLATE"] = template_database(os.environ["DATABASE_URL"], run, given)
    else:
        copy_tables(Path(testing["NAME"]), run, given)
    # Nothing is left to create.
    testing["MIGRATE"] = False


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Whether what is there before the run is the database to use: SQLite's copy of the template.

    It goes with the directory of the run.
    """
    return environment.database() == "sqlite"


@pytest.fixture(autouse=True)
def _fresh_budgets() -> None:
    # A rolled back database gives the same history ids again; the cache would take them for known.
    # Nor has a model of one test shown anything about one of the next.
    from helmdash.doors.limits import key_limits
    from helmdash.operations.access import sign_in_throttle
    from helmdash.operations.database import clock, rule_sets
    from helmdash.operations.recording import message_keys, truncation
    from helmdash.queries import upstreams
    from helmdash.queries.budgets import budgets
    from helmdash.queries.whatif import kept_fits
    from helmdash.records.statements import partitions

    kept_fits.forget_catalogs()
    truncation.forget()
    message_keys.forget()
    rule_sets.forget()
    sign_in_throttle.forget()
    clock.forget()
    key_limits.cache_clear()
    budgets.forget_cache()
    # Nor do they grow old: how many queries are made would hang on the load. Edits are seen anyway.
    budgets._MAX_AGE_SECONDS = float("inf")
    upstreams.forget_cache()
    partitions.forget()


@pytest.fixture
def same_as_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function (name, text) that asserts that tests/golden/NAME holds `text`."""
    write: bool = request.config.getoption("--write-golden")
    return lambda name, text: golden.compare(name, text, write=write)


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Served]:
    """A function that starts a HelmDash with fresh data; for tests that kill or configure it.

    It ends with the fixture or the test that starts it. Keywords are environment variables of the
    server; first=True: nothing has been set up yet.
    """
    return partial(_servers.start, tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="session")
def served(serve: Callable[..., Served]) -> Served:
    """A running HelmDash, shared by the tests of this worker."""
    return serve()


@pytest.fixture(scope="session")
def _chromium() -> str:
    try:
        return chromium.find()
    except chromium.NoChromium as error:
        needs.missing("Chromium", str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, None, None]:
    yield
    if nextitem is None or nextitem.get_closest_marker("browser") is None:
        _browser.stop()


@pytest.fixture
def new_page(_chromium: str) -> Iterator[Callable[..., BrowserPage]]:
    """A function that opens a page; keywords are Playwright's (viewport, color_scheme, ...)."""
    with _browser.pages(_chromium) as opener:
        yield opener


@pytest.fixture
def browser_page(new_page: Callable[..., Any]) -> BrowserPage:
    """A page of 1280 x 800 in the light scheme. Mark the test with `browser`."""
    page: BrowserPage = new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    return page


@pytest.fixture(scope="session")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """A real model behind llama.cpp's server. Mark the test with `model`."""
    try:
        weights = find_weights()
    except NoModel as error:
        needs.missing("The local model", str(error))
    with run_model(weights, tmp_path_factory.mktemp("model") / "log") as model:
        yield model
