"""Golden files: whole outputs kept in tests/golden, read in the diff, written by `make golden`."""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path

import pytest

from tests.support import needs

DIRECTORY = Path(__file__).resolve().parents[1] / "golden"


def compare(name: str, text: str, *, write: bool) -> None:
    """Assert that tests/golden/NAME holds `text`; with `write`, make it so."""
    file = DIRECTORY / name
    if write:
        if needs.in_ci():
            raise pytest.UsageError("--write-golden makes no sense in CI")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
        return
    assert file.exists(), f"tests/golden/{name} is missing: run `make golden` and read the diff"
    kept = file.read_bytes().decode()
    if text != kept:
        lines = difflib.unified_diff(
            kept.splitlines(), text.splitlines(), "kept", "now", n=2, lineterm=""
        )
        shown = "\n".join(itertools.islice(lines, 40))
        pytest.fail(f"tests/golden/{name} differs: see `make golden`\n{shown}", pytrace=False)
