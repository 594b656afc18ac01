"""What the repository promises: its commands, its locks, and no trace of a workplace."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helmdash.conf import Env, variable_names
from tests.support import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PROJECT = PYPROJECT["project"]
_PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<rest>.*)$", re.MULTILINE)
# A home or a scratch directory of whoever wrote the file, in text that is not about such paths.
_WORKPLACE = re.compile(rb"/(?:root|home/\w+|Users/\w+)/")
_SPEAKS_OF_PATHS = {"tests/tooling/test_repository.py"}


def _pins(file: str) -> dict[str, str]:
    return {
        canonicalize_name(found["name"]): found["version"]
        for found in _PINNED.finditer((ROOT / file).read_text(encoding="utf-8"))
    }


def _committed() -> list[Path]:
    """Every file of the repository, those not yet added included."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        return [path for path in ROOT.rglob("*") if not _is_made(path.relative_to(ROOT))]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def _is_made(path: Path) -> bool:
    """Whether git would ignore it; for a checkout without git."""
    return any(part in {"var", "__pycache__"} or part.startswith(".") for part in path.parts)


@pytest.mark.parametrize(
    ("requirements", "file"),
    [
        (_PROJECT["dependencies"], "requirements.txt"),
        (_PROJECT["dependencies"], "requirements-dev.txt"),
        (_PROJECT["optional-dependencies"]["dev"], "requirements-dev.txt"),
        (PYPROJECT["dependency-groups"]["model"], "requirements-model.txt"),
    ],
)
def test_a_lock_pins_all_that_pyproject_asks_for(requirements: list[str], file: str) -> None:
    pins = _pins(file)

    wrong = [
        f"{wanted} (locked: {pins.get(canonicalize_name(wanted.name))})"
        for wanted in map(Requirement, requirements)
        if not wanted.specifier.contains(pins.get(canonicalize_name(wanted.name), "0"))
    ]

    assert wrong == [], f"{file} is not in step with pyproject.toml: run `make lock`"


def test_the_test_packages_are_locked_to_the_runtime_versions() -> None:
    runtime, dev = _pins("requirements.txt"), _pins("requirements-dev.txt")

    assert {name: dev.get(name) for name in runtime} == runtime


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-dev.txt", "requirements-model.txt"]
)
def test_every_pin_has_a_hash_and_no_lock_names_a_registry(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[\w])", text)

    assert [
        block for block in blocks if _PINNED.match(block) and "--hash=sha256:" not in block
    ] == []
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links", text) == []


_NAMING_TARGETS = [
    ".ci/run",
    *(
        each.relative_to(ROOT).as_posix()
        for each in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    ),
]


@pytest.mark.parametrize("page", sorted(_NAMING_TARGETS))
def test_every_make_command_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = (ROOT / page).read_text(encoding="utf-8")

    # At the start of a line, perhaps after variables, or in `code`.
    named = set(re.findall(r"(?m)(?:^\s*(?:\w+=\S+ )*|`)make (?:--[a-z-]+ )*([a-z-]+)", text))

    assert named <= targets
    assert "test" in named or page not in {"README.md", ".ci/run", "docs/contributing.md"}


@pytest.mark.parametrize("package", ["records", "queries", "operations", "api", "pages"])
def test_what_happens_after_the_start_reads_settings_from_conf(package: str) -> None:
    reading = re.compile(r"^\s*from django\.conf import settings\b", re.MULTILINE)

    readers = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "helmdash" / package).rglob("*.py")
        if path.parent.name != "migrations"
        if reading.search(path.read_text(encoding="utf-8"))
    ]

    assert readers == [], "read helmdash.conf instead"


def test_no_file_names_the_place_where_it_was_written() -> None:
    leaks = [
        f"{path.relative_to(ROOT)}: {found.group().decode()}"
        for path in _committed()
        if path.is_file() and str(path.relative_to(ROOT)) not in _SPEAKS_OF_PATHS
        for found in _WORKPLACE.finditer(path.read_bytes())
    ]

    assert leaks == []


_DEPLOYED = [path for path in sorted((ROOT / "docs/deploy").iterdir()) if path.is_file()]


@pytest.mark.parametrize("path", _DEPLOYED, ids=lambda path: path.name)
def test_files_to_deploy_name_settings_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert set(re.findall(r"\bHELMDASH_[A-Z_]+", text)) <= {
        name for field in Env.model_fields for name in variable_names(field)
    }


def test_the_image_is_made_of_files_that_exist_and_packages_that_are_locked() -> None:
    text = (ROOT / "docs/deploy/Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", text)
    (builders,) = re.findall(r"/\^\(([\w|-]+)\)==/", text)

    assert [name for line in copied for name in line.split() if not (ROOT / name).exists()] == []
    wanted = {"hatchling"}
    for name in ("hatchling", *map(canonicalize_name, builders.split("|"))):
        needs = map(Requirement, distribution(name).requires or ())
        wanted |= {each.name for each in needs if not each.marker or each.marker.evaluate()}
    assert set(builders.split("|")) == {canonicalize_name(name) for name in wanted}
    assert wanted <= set(_pins("requirements-dev.txt"))
