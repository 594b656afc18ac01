"""What the documents name exists: files, headings, modules, commands, settings, targets of make."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from helmdash.conf import Env, variable_names
from helmdash.metrics import exposition
from helmdash.operations.database.replica import ReplicaState
from helmdash.operations.recorder import RecorderState
from helmdash.queries.ledger import LedgerCounts
from helmdash.queries.rollups import Waiting
from tests.doors.test_metrics import JOBS
from tests.support import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
_PACKAGE = ROOT / "helmdash"
_PARTS = frozenset(
    path.name.removesuffix(".py")
    for path in _PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
)
_FOLDERS = "helmdash|tests|bench|docs|templates|fixtures|static"
_PATH = re.compile(rf"`((?:{_FOLDERS})/[\w./-]*)`")
_DOTTED = re.compile(r"`((?:\w+\.)+\w+)(?:\(\))?`")
_MANAGE = re.compile(r"manage\.py (?P<name>[a-z_]+)(?P<rest>[^`\n]*)")
_SETTING = re.compile(r"\bHELMDASH_[A-Z0-9_]+")
# Of the tests and of clients, not of the server.
_OTHERS_SETTINGS = frozenset({"HELMDASH_TEST_DB", "HELMDASH_API_KEY", "HELMDASH_URL"})
_ROW = re.compile(r"(?m)^\| `(?P<package>[\w.]+)`(?P<more>[^|]*) \| (?P<text>.+) \|$")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = _PATH.findall(PAGES[page])
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", PAGES[page])
    here = (ROOT / page).parent

    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [name for name in linked if not (here / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_heading_that_is_linked_exists(page: str) -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", PAGES[page])
    missing = [
        f"{file}#{anchor}"
        for file, anchor in linked
        if anchor not in _anchors((ROOT / page).parent / file if file else ROOT / page)
    ]

    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_is_named_exists(page: str) -> None:
    named = [name.removeprefix("helmdash.") for name in _DOTTED.findall(PAGES[page])]
    ours = [name for name in named if name.partition(".")[0] in _PARTS and not _is_file(name)]

    assert [name for name in ours if not _exists(f"helmdash.{name}")] == []


def test_the_table_of_packages_names_what_is_in_them() -> None:
    rows = list(_ROW.finditer(PAGES["docs/architecture.md"]))
    wrong = [
        f"{row['package']}: {name}"
        for row in rows
        for name in re.findall(r"`([\w.]+)`", row["text"])
        if not _exists(f"helmdash.{row['package'].removesuffix('.py')}.{name}")
        and not _exists(f"helmdash.{name}")
    ]
    packages = {
        name for row in rows for name in (row["package"], *re.findall(r"`([\w.]+)`", row["more"]))
    }

    assert wrong == []
    assert {path.name for path in _PACKAGE.iterdir() if (path / "__init__.py").exists()} <= packages


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_named_exists_with_its_options(page: str) -> None:
    known = get_commands()
    for found in _MANAGE.finditer(PAGES[page]):
        name, app = found["name"], known.get(found["name"])
        assert app, f"manage.py {name}"
        command = load_command_class(app, name)
        options = set(_options(command.create_parser("manage.py", name)))

        assert set(re.findall(r"--[a-z-]+", found["rest"])) <= options, f"manage.py {name}"


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_that_is_named_exists(page: str) -> None:
    ours = {name for field in Env.model_fields for name in variable_names(field)}
    known = ours | _OTHERS_SETTINGS

    assert set(_SETTING.findall(PAGES[page])) - known == set()


def test_what_to_watch_names_each_metric_of_ours() -> None:
    told = exposition(
        LedgerCounts(),
        state=RecorderState.STORING,
        is_database_available=True,
        waiting=Waiting(calls=0, transactions=0, age_s=0.0, projects=0),
        jobs=[JOBS["late"]],
        replica=ReplicaState(problem="", from_replica=0, from_primary=0, failed=0),
        stuck_files=0,
    )
    ours = {
        re.split(r"[{ ]", line)[0]
        for line in told.decode().splitlines()
        if line.startswith("helmdash_")
    }

    named = set(re.findall(r"(?m)^\| `(helmdash_\w+)`", PAGES["docs/operations.md"]))

    assert named == ours


def _anchors(path: Path) -> set[str]:
    """What the headings of a page are linked by, as GitHub makes them."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", path.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def _is_file(name: str) -> bool:
    return name.rpartition(".")[2] in {"py", "md", "toml", "json", "jsonl", "html", "ndjson"}


def _exists(dotted: str) -> bool:
    """Whether it is a module, or something in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        if (module := _module(".".join(parts[:count]))) is None:
            continue
        value: object = module
        for name in parts[count:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


def _module(dotted: str) -> object | None:
    try:
        found = importlib.util.find_spec(dotted)
    except ModuleNotFoundError:
        return None
    return importlib.import_module(dotted) if found else None


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _options(child)
