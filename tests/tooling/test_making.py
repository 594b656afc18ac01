"""What make finds done already, and what it does anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One that has been set up, as far as make looks: a virtualenv with pip, and the marks."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for locked in ROOT.glob("requirements*.txt"):
        shutil.copy(locked, tmp_path)
    made = tmp_path / ".venv"
    venv.create(made, symlinks=True)
    (_library(tmp_path) / "site-packages/pip").mkdir()
    (_library(tmp_path) / "site-packages/pip/__init__.py").touch()
    counted = subprocess.check_output(["cksum"], input=(ROOT / "requirements.txt").read_bytes())
    (made / ".made").touch()
    (made / f".runtime-{counted.split()[0].decode()}").touch()
    return tmp_path


def _library(checkout: Path) -> Path:
    return checkout / ".venv/lib" / "python{}.{}".format(*sys.version_info)


def _told(checkout: Path, python: str | Path = sys.executable) -> str:
    """What `make run` would do."""
    command = ["make", "--dry-run", "run", f"PYTHON={python}"]
    # Nothing of the make that runs this test.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.check_output(command, cwd=checkout, env=env, text=True)


def test_what_is_set_up_is_only_run(checkout: Path) -> None:
    assert _told(checkout).split() == ["exec", ".venv/bin/python", "manage.py", "up"]


def test_a_python_of_another_version_in_its_place_is_set_up_anew(checkout: Path) -> None:
    """The system's python3 was 3.11 and became 3.13: it looks for packages in another folder."""
    _library(checkout).rename(_library(checkout).with_name("python3.0"))

    told = _told(checkout)

    assert "-m venv --clear .venv" in told
    assert "pip" in told
    assert "install --require-hashes -r requirements.txt" in told


def test_a_python_that_is_gone_is_set_up_anew(checkout: Path) -> None:
    (checkout / ".venv/bin/python3").unlink(missing_ok=True)
    (checkout / ".venv/bin/python").unlink(missing_ok=True)

    assert "-m venv --clear .venv" in _told(checkout)


def test_a_python_that_is_named_takes_the_place_of_another_one(checkout: Path) -> None:
    other = checkout / "python3.99"
    other.write_text("#!/bin/sh\necho /elsewhere 3.99.0\n")
    other.chmod(0o755)

    assert "-m venv --clear .venv" in _told(checkout, other)
    # Neither is anything to make one of: too old, or none at all.
    other.write_text("#!/bin/sh\n")
    for useless in (other, checkout / "no-python"):
        assert "-m venv" not in _told(checkout, useless)
