"""The command needs nothing but a Python of 3.9 or newer."""

from __future__ import annotations

import ast
import io
import sys
import zipfile
from pathlib import Path

import pytest

from helmdash import transcripts
from helmdash.transcripts.archive import build_archive

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(Path(transcripts.__path__[0]).rglob("*.py"))


def test_its_syntax_and_its_imports_are_those_of_python_3_9() -> None:
    # Came with 3.10 or later, whatever the syntax says.
    too_new = {"tomllib", "UTC", "StrEnum", "Self", "TypeAlias", "ParamSpec", "assert_never"}
    allowed = {*sys.stdlib_module_names, "helmdash"} - too_new

    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules, names = {alias.name for alias in node.names}, set()
            elif isinstance(node, ast.ImportFrom):
                modules, names = {node.module or ""}, {alias.name for alias in node.names}
            else:
                continue
            assert {module.partition(".")[0] for module in modules} <= allowed, path
            assert not names & too_new, path
            inner = {module for module in modules if module.startswith("helmdash")}
            assert all(module.startswith("helmdash.transcripts") for module in inner), path


def test_no_part_takes_what_came_after_3_9() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        keywords = {
            (getattr(node.func, "id", getattr(node.func, "attr", "")), keyword.arg)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
        }
        too_new = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only")}
        assert not keywords & too_new, path


def test_the_file_in_the_repository_is_made_of_these_sources(
    request: pytest.FixtureRequest,
) -> None:
    stored, made = ROOT / "helmdash.pyz", build_archive()
    if request.config.getoption("--write-golden"):
        stored.write_bytes(made)

    # Compared by hand: of bytes that differ nobody wants to be shown 100 kB.
    is_same = stored.exists() and stored.read_bytes() == made
    assert is_same, "helmdash.pyz is older than its sources: run make golden"


def test_equal_sources_give_equal_bytes_and_hold_nothing_else() -> None:
    first, second = build_archive(), build_archive()

    assert first == second
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    assert names[:2] == ["__main__.py", "helmdash/__init__.py"]
    assert {name.split("/")[1] for name in names[2:]} == {"transcripts"}
    assert len(names) == len(SOURCES) + 2
