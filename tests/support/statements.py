"""Which tests say something of the database: those that make it do what no other test does.

A test of a page or of the API mostly asks the database what a hundred others ask it. On a second
database such a test is wanted if there it runs a statement that no other runs, or the same with
another outcome (the kind of error, none, one or many rows) or with values that databases treat
differently (U+0000, letters beyond ASCII, whole numbers beyond 32 and 64 bits, long texts).
A test of what writes is wanted as well if one statement in it follows upon another that has
changed something, each with its outcome, as in no other: there it meets what that one has done.

As a plugin (`-p tests.support.statements --note-statements DIR`) this notes what each test asks;
`python -m tests.support.statements DIR` then chooses the cheapest tests that together ask all of
it, and writes the others to `tests/support/said_elsewhere.txt`: the second run leaves them out.
A test that is not in the file runs, so a new one does. `make said-elsewhere` does both.
"""

from __future__ import annotations

import heapq
import json
import math
import os
import re
import sys
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

LIST = Path(__file__).with_name("said_elsewhere.txt")
# Faces: what they ask of the database goes through `queries` and `operations`.
FACES = ("access", "admin", "api", "mcp", "pages", "planning")
# What writes: there each statement meets what those before it have done.
WRITERS = ("exporting", "operations", "otlp", "recording", "rollups")
# Committed work and servers of their own: what others do meanwhile matters, which nothing tells.
_NOT_ALONE = {"transactional_db", "serve"}
# What it sends changes with its own release and settings: nobody may count on it.
_BY_CHANCE = "tests/api/test_schemathesis.py"
# That a test costs at least, in seconds: its fixtures, its emptying.
_LEAST_SECONDS = 0.02
_LONG_TEXT = 2000
_TEXTS = re.compile(r"'[^']*'")
_NUMBERS = re.compile(r"\b\d+\b")
_PLACES = re.compile(r"%s(?:\s*,\s*%s)+")
_ROWS = re.compile(r"\(%s\)(?:\s*,\s*\(%s\))*")
# As xdist adds it to what it runs by groups.
_GROUP = re.compile(r"@\w+$")
# A case may be named by a text of 30,000 letters: such a one runs.
_LONG_LINE = 250
# Between what stands for two statements.
_THEN = " then "
# How a statement begins that changes what the next one meets: what has only read does not.
_CHANGING = ("INSERT", "UPDATE", "DELETE", "WITH", "ROLLBACK")


@dataclass(slots=True)
class Told:
    """What one case of a test has asked."""

    seconds: float = 0.0
    asked: set[str] = field(default_factory=set)
    may_stay_away: bool = True


# --- noting -----------------------------------------------------------------------------------


class _Notes:
    """Everything that was asked in this process, by number, and by test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers: dict[str, int] = {}
        self._written = 0
        self._shapes: dict[str, str] = {}
        self._before = ""
        self.now: set[int] = set()

    def add(self, statement: object, values: object, outcome: str) -> None:
        text = str(statement)
        shape = self._shapes.get(text)
        if shape is None:
            shape = self._shapes[text] = shape_of(text)
        asked = [f"{what} {shape}" for what in (outcome, *kinds_of(values))]
        this = f"{crc32(asked[0].encode()):08x}"
        if self._before:
            asked.append(f"{self._before}{_THEN}{this}")
        for each in asked:
            self.now.add(self._numbers.setdefault(each, len(self._numbers)))
        self._before = this if shape.startswith(_CHANGING) else ""

    def end(self, item: pytest.Item, seconds: float) -> None:
        fixtures = set(item.fixturenames) if isinstance(item, pytest.Function) else set()
        # With what no line before has said: a worker may end at any time.
        new = [*self._numbers][self._written :]
        self._written += len(new)
        line = [item.nodeid, seconds, not fixtures & _NOT_ALONE, sorted(self.now), new]
        name = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.jsonl"
        with (self._directory / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.now, self._before = set(), ""


_notes: _Notes | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--note-statements", metavar="DIR", help="note what each test asks")


def pytest_sessionstart(session: pytest.Session) -> None:
    global _notes
    directory = session.config.getoption("--note-statements")
    if directory is None:
        return
    Path(directory).mkdir(parents=True, exist_ok=True)
    _notes = _Notes(Path(directory))
    _listen(_notes)


def _listen(notes: _Notes) -> None:
    from django.db.backends.utils import CursorWrapper

    def heard(run: Any) -> Any:
        def listening(cursor: Any, statement: object, values: Any = None) -> Any:
            try:
                answer = run(cursor, statement, values)
            except Exception as error:
                notes.add(statement, values, type(error).__name__)
                raise
            rows = cursor.cursor.rowcount
            notes.add(statement, values, {-1: "?", 0: "none", 1: "one"}.get(rows, "many"))
            return answer

        return listening

    for name in ("execute", "executemany"):
        setattr(CursorWrapper, name, heard(getattr(CursorWrapper, name)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if _notes is None:
        return (yield)
    started = time.process_time()
    try:
        return (yield)
    finally:
        _notes.end(item, time.process_time() - started)


def shape_of(statement: str) -> str:
    """A statement without what varies from one use to the next."""
    if statement.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK TO")):
        return statement.split()[0]
    bare = _NUMBERS.sub("0", _TEXTS.sub("''", statement))
    return " ".join(_ROWS.sub("(%s)", _PLACES.sub("%s", bare)).split())


def kinds_of(values: object) -> set[str]:
    """The kinds of value among them, however deep, that databases treat differently."""
    return {kind for value in _flat(values) if (kind := _kind(value)) is not None}


def _flat(value: Any) -> Iterator[object]:
    if isinstance(value, Mapping):
        for each in value.items():
            yield from _flat(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _flat(each)
    else:
        # psycopg's Json and its like wrap what they write.
        yield value.obj if hasattr(value, "obj") else value


def _kind(value: object) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else "no number"
    if isinstance(value, int):
        return "64 bits" if abs(value) >= 2**63 else "32 bits" if abs(value) >= 2**31 else None
    if not isinstance(value, str):
        return None
    if "\0" in value or "\\u0000" in value:
        return "U+0000"
    if len(value) > _LONG_TEXT:
        return "long"
    return None if value.isascii() else "beyond ASCII"


# --- choosing ---------------------------------------------------------------------------------


def read_notes(directory: Path) -> dict[str, Told]:
    """What every case of a test asked, by its id."""
    found: dict[str, Told] = {}
    for file in directory.glob("*.jsonl"):
        texts: list[str] = []
        for line in file.read_text("utf-8").splitlines():
            node, seconds, may_stay_away, asked, new = json.loads(line)
            texts += new
            told = found.setdefault(case_of(node), Told())
            told.seconds += seconds + _LEAST_SECONDS
            if node.startswith(_BY_CHANCE):
                told.may_stay_away = False
                continue
            part = node.split("/")[1]
            told.asked.update(
                text
                for text in map(texts.__getitem__, asked)
                if part not in FACES or _THEN not in text
            )
            told.may_stay_away &= may_stay_away and part in (*FACES, *WRITERS)
    return found


def said_elsewhere(found: Mapping[str, Told]) -> list[str]:
    """The tests that ask nothing beyond what the others do; those that ask much for little stay."""
    asked: set[str] = set()
    for told in found.values():
        if not told.may_stay_away:
            asked |= told.asked
    left_out = []
    # What a test is worth only falls as others are chosen: who is worth most by what was reckoned
    # earlier, and still is, is worth more than all below.
    by_worth = [(-_worth(told, asked), name) for name, told in found.items() if told.may_stay_away]
    heapq.heapify(by_worth)
    while by_worth:
        _, name = heapq.heappop(by_worth)
        worth = _worth(found[name], asked)
        if not worth:
            left_out.append(name)
        elif by_worth and by_worth[0] < (-worth, name):
            heapq.heappush(by_worth, (-worth, name))
        else:
            asked |= found[name].asked
    return sorted(left_out)


def _worth(told: Told, asked: set[str]) -> float:
    return len(told.asked - asked) / told.seconds


def in_few_words(left_out: Collection[str], found: Iterable[str]) -> list[str]:
    """The same, with a function's id alone where all its cases are left out."""
    stay = {function_of(case) for case in set(found).difference(left_out)}
    return sorted({case if (name := function_of(case)) in stay else name for case in left_out})


def case_of(node: str) -> str:
    """A test's id without the group that xdist adds where it runs them."""
    return _GROUP.sub("", node)


def function_of(node: str) -> str:
    """A test's id without its case, too."""
    return node.split("[")[0].split("@")[0]


def read_list() -> frozenset[str]:
    """The tests to leave out on a second database, as `case_of` or `function_of` names them."""
    lines = LIST.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def main(arguments: Iterable[str]) -> None:
    """Write the list anew from a directory of notes."""
    (directory,) = arguments
    found = read_notes(Path(directory))
    left_out = said_elsewhere(found)
    lines = [each for each in in_few_words(left_out, found) if len(each) <= _LONG_LINE]
    heading = (
        "# Tests that ask the database nothing that no other asks; made by `make said-elsewhere`."
    )
    LIST.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
    seconds = sum(found[name].seconds for name in left_out)
    everything = sum(told.seconds for told in found.values())
    sys.stdout.write(
        f"{len(left_out)} of {len(found)} tests say nothing new: {seconds:.0f} of "
        f"{everything:.0f} seconds of CPU\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
