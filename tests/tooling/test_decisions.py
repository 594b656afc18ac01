"""Every decision says when it was taken and whether it still holds."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from tests.support import ROOT

FILES = sorted((ROOT / "docs" / "adr").glob("*.md"))
_TOP = re.compile(
    r"# (?P<number>\d+)\. \S.*\n\n"
    r"Date: (?P<date>\d{4}-\d\d-\d\d)\. "
    r"Status: (?P<status>proposed|accepted|superseded by (?P<by>\d+))"
    r"(?:, amended by (?P<amended>\d+(?:, \d+)*))?\.\n"
)


def test_the_numbers_run_without_gaps() -> None:
    assert [int(file.name[:4]) for file in FILES] == list(range(1, len(FILES) + 1))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name[:4])
def test_a_decision_begins_with_number_date_and_status(file: Path) -> None:
    top = _TOP.match(file.read_text(encoding="utf-8"))

    assert top, "begin with: # N. Title, an empty line, `Date: YYYY-MM-DD. Status: accepted.`"
    assert int(top["number"]) == int(file.name[:4])
    date.fromisoformat(top["date"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name[:4])
def test_what_supersedes_or_amends_a_decision_comes_later_and_exists(file: Path) -> None:
    top = _TOP.match(file.read_text(encoding="utf-8"))
    assert top
    later = [int(number) for number in re.findall(r"\d+", f"{top['by']} {top['amended']}")]

    assert all(int(file.name[:4]) < number <= len(FILES) for number in later)
