"""What a line cites is in the repository: a decision, a page, a heading of docs/sources.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support import ROOT

SOURCES = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
HEADINGS = frozenset(re.findall(r"(?m)^#{2,3} (.+)$", SOURCES))
DECISIONS = frozenset(int(path.name[:4]) for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
_FOLDERS = ("helmdash", "tests", "bench", "docs", "templates", "fixtures")
_SUFFIXES = frozenset({".py", ".md", ".html", ".toml", ".json", ".txt"})
_OWN = Path(__file__).relative_to(ROOT).as_posix()

# Documents that were never in the repository, by how they used to be cited.
_ABSENT: dict[str, re.Pattern[str]] = {
    "a design document": re.compile(r"[Tt]he seeds?'s?\b|\b[Tt]he seed\b|\b[Dd]esign [a-z]+\.md"),
    "a specification": re.compile(r"\bspec/|\bthe (?:study|spec)(?:'s)?\b"),
    "a section of it": re.compile(r"§|\b[Ss]ection \d|\b[Aa]ppendix [A-Z0-9]\b"),
    "a defect by number": re.compile(r"\bdefects? B\d|\(B\d+\)|\bfaults? \d|Source: B\d"),
    "an issue": re.compile(r"(?<!xdist )(?<!ollama )\b[Ii]ssues? \d"),
    "another's decision": re.compile(r"(?<!helmdeck )\bADR 0\d\d\b"),
}
# Files of agents, which HelmDash reads or tells of, and one that pip knows.
_OTHERS_FILES = frozenset({"AGENTS.md", "CLAUDE.md"})
# Addresses that are called or stand for anyone's, not read.
_NO_DOCUMENT = re.compile(r"^(?:api\.|127\.|generativelanguage|.*example\.|ollama$|localhost)")


def _texts() -> Iterator[tuple[str, str]]:
    """Each file's name, and its text with the breaks of wrapped comments taken out."""
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in _SUFFIXES and name != _OWN:
                yield name, re.sub(r"\n[\s#]*", " ", path.read_text(encoding="utf-8"))


@cache
def texts() -> dict[str, str]:
    """All of it, read when the first test asks: every lane collects these tests, one runs them."""
    return dict(_texts())


@pytest.mark.parametrize("what", _ABSENT)
def test_no_line_cites_what_is_not_in_the_repository(what: str) -> None:
    found = [
        f"{name}: {text[max(0, hit.start() - 40) : hit.end() + 20]}"
        for name, text in texts().items()
        for hit in _ABSENT[what].finditer(text)
    ]

    assert found == [], "say the reason itself, or name a heading of docs/sources.md"


def test_every_page_that_is_named_exists() -> None:
    known = {path.name for path in (ROOT / "docs").rglob("*.md")} | {"README.md", "CHANGELOG.md"}

    named = {
        f"{name}: {hit}"
        for name, text in texts().items()
        for hit in re.findall(r"(?<![\"'`/\w.-])[\w-]+\.md\b(?![\"'`])", text)
        if hit not in known | _OTHERS_FILES
        and name.startswith(("helmdash/", "docs/", "templates/"))
    }

    assert named == set()


def test_every_decision_that_is_cited_exists() -> None:
    cited = {
        (name, int(number))
        for name, text in texts().items()
        for found in re.findall(r"(?<!helmdeck )\bADRs? ((?:\d{1,2}(?:, | and | to )?)+)", text)
        for number in re.findall(r"\d+", found)
    }

    assert {number for _, number in cited} - DECISIONS == set()
    assert cited, "the pattern finds nothing any more"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bhelmdeck ADR \d{3}\b",
        r"\bRFC \d{4}\b",
        r"\bContext Manager\b",
        r"\bContext Health Monitor\b",
    ],
)
def test_every_source_that_is_cited_is_a_heading(pattern: str) -> None:
    cited = {hit for text in texts().values() for hit in re.findall(pattern, text)}

    assert cited, "nobody cites it"
    assert cited <= HEADINGS


def test_every_module_that_tells_its_source_tells_a_known_one() -> None:
    unknown = [
        f"{name}: {told}"
        for name, text in texts().items()
        if name.startswith("helmdash/") and name.endswith(".py")
        for told in re.findall(r"\bSources?: (?!str\b|\w+Source\b)(.{,160})", text)
        if not _is_known(told)
    ]

    assert unknown == []


def test_every_host_of_a_document_is_named() -> None:
    hosts = {
        host
        for name, text in texts().items()
        if name.startswith("helmdash/") and name.endswith(".py")
        for host in re.findall(r"https?://([\w.-]*\w)", text)
        if not _NO_DOCUMENT.search(host)
    }

    assert {host for host in hosts if host not in SOURCES} == set()


def _is_known(told: str) -> bool:
    hosts = re.findall(r"[\w-]+(?:\.[\w-]+)+(?=/)", told)
    return any(heading in told for heading in HEADINGS) or any(host in SOURCES for host in hosts)
