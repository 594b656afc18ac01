"""Every exception of ours is drawn in docs/architecture.md, below what it is one of."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from helmdash.providers import errors
from helmdash.upstream import failures
from tests.support import ROOT

# With its bases; what has none is no exception. A tree of each file would take seconds.
_CLASS = re.compile(r"(?m)^ *class (\w+)\(((?:[^()]|\([^()]*\))*)\):")
_LINE = re.compile(r"^(?P<indent>[| ]*)\+-- (?P<name>[\w.]+)(?: \((?P<base>[\w.]+)\))?")


class Drawn(NamedTuple):
    """An exception where it belongs. `base` is None for a plain Exception."""

    room: str
    name: str
    base: str | None


class _Class(NamedTuple):
    path: Path
    name: str
    bases: tuple[str, ...]


def _classes() -> Iterator[_Class]:
    for path in sorted((ROOT / "helmdash").rglob("*.py")):
        for name, told in _CLASS.findall(path.read_text(encoding="utf-8")):
            bases = (each.strip() for each in re.split(r",\s*(?![^\[]*\])", told))
            yield _Class(path, name, tuple(each for each in bases if each and "=" not in each))


def _is_exception(base: str, known: set[str]) -> bool:
    name = base.rpartition(".")[2]
    found = getattr(builtins, name, None)
    is_builtin = isinstance(found, type) and issubclass(found, BaseException)
    return name in known or is_builtin or name.endswith("Error")


@cache
def _ours() -> set[Drawn]:
    """Those with a public name; an exception of a module's own is nobody else's matter."""
    classes = list(_classes())
    known: set[str] = set()
    while more := {
        each.name
        for each in classes
        if each.name not in known and any(_is_exception(base, known) for base in each.bases)
    }:
        known |= more
    return {
        Drawn(
            each.path.relative_to(ROOT / "helmdash").parts[0].removesuffix(".py"),
            each.name,
            None if each.bases == ("Exception",) else each.bases[0],
        )
        for each in classes
        if each.name in known and not each.name.startswith("_")
    }


def _lines(text: str) -> Iterator[tuple[int, str, str | None]]:
    for line in text.splitlines():
        if found := _LINE.match(line):
            yield len(found["indent"]) // 4, found["name"], found["base"]


def _drawn() -> list[Drawn]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    above: list[str] = []
    drawn: list[Drawn] = []
    for level, name, base in _lines(page.partition("## Errors\n")[2].partition("\n## ")[0]):
        above[level:] = [name]
        if level:
            drawn.append(Drawn(above[0], name, above[level - 1] if level > 1 else base))
    return drawn


def test_the_drawing_has_every_exception_of_ours_and_no_other() -> None:
    drawn = _drawn()

    assert set(drawn) == _ours()
    assert len(drawn) == len(set(drawn))


def test_the_rooms_that_draw_their_own_tree_draw_all_of_it() -> None:
    for room, module in (("providers", errors), ("upstream", failures)):
        here = {name.rpartition(".")[2] for _, name, _ in _lines(module.__doc__ or "")}

        missing = {each.name for each in _ours() if each.room == room} - here
        assert not missing, module.__name__
