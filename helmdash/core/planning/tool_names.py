"""The names a model calls tools by, and the catalog's entries they stand for.

MCP clients show a pack under names of their own (`helmdeck__blog-publish`,
`mcp__helmdeck__blog-publish`), and models mix those with the catalog's. A spelling counts only
where exactly one entry fits it: a plan must never guess between two tools.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from helmdash.core.catalog.catalog import Catalog, CatalogEntry
from helmdash.core.planning.plans import META_TOOLS, PIPELINE_RUN

# As MCP clients put it before the names of a server's tools.
_CLIENT_PREFIX: Final = "helmdeck__"
# What clients put before a name, one after the other: "functions.", "mcp__", the server's name.
_PREFIX: Final = re.compile(
    r"(?:functions|tools|mcp|helmdeck|helmdash)(?:__|[.:/_-])|[\w-]{1,64}?__", re.IGNORECASE
)
_QUOTES: Final = " \t\r\n\"'`*\u2018\u2019\u201c\u201d"
_BETWEEN_WORDS: Final = re.compile(r"[\s._:/-]+")
_BLANK: Final = frozenset(("", "-"))
_NOT_IN_CLIENT_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
# Names are short. Of a longer text only the start is compared, so that noise costs no time.
_LONGEST_NAME: Final = 256
# How alike two names must be to be suggested for each other: "content.grounding" is 0.86 like
# "content.ground", "youtube.transcript" is 0.52 like the nearest id of the demo catalog.
_NEAR: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntry:
    """The entry a name stands for, and whether the name is the catalog's own."""

    entry: CatalogEntry
    is_exact: bool


class ToolNames:
    """The names of one catalog, ready to be looked up. The planner's own are left out."""

    def __init__(self, catalog: Catalog) -> None:
        self._by_id: dict[str, CatalogEntry] = {}
        self._by_spelling: dict[str, list[CatalogEntry]] = {}
        for entry in catalog.entries:
            if _spelling(entry.id) in _META_SPELLINGS:
                continue
            self._by_id[entry.id] = entry
            for spelling in {_spelling(entry.id), _spelling(_shown(entry.id))} - _BLANK:
                self._by_spelling.setdefault(spelling, []).append(entry)

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def find(self, asked: str) -> NamedEntry | None:
        """Find the one entry that a name stands for; None for no entry, or for several."""
        exact = self.find_exact(asked)
        if exact is not None:
            return NamedEntry(entry=exact, is_exact=True)
        fitting = self._fitting(asked)
        return NamedEntry(entry=fitting[0], is_exact=False) if len(fitting) == 1 else None

    def find_exact(self, asked: str) -> CatalogEntry | None:
        """The entry of exactly this id, quotes and space around it left out; None: there is
        none."""
        return self._by_id.get(asked) or self._by_id.get(_bare(asked))

    def rivals(self, asked: str) -> tuple[str, ...]:
        """The ids that a name fits equally well; none where it fits one entry, or nothing."""
        fitting = self._fitting(asked)
        return tuple(entry.id for entry in fitting) if len(fitting) > 1 else ()

    def near(self, asked: str, limit: int = 3) -> tuple[str, ...]:
        """The ids that are spelled most like a name, nearest first. Takes ms on a large catalog."""
        found: dict[str, None] = {}
        for rest in _stripped(_bare(asked)):
            spelling = _spelling(rest)
            for near in difflib.get_close_matches(spelling, self._by_spelling, limit, _NEAR):
                found |= dict.fromkeys(entry.id for entry in self._by_spelling[near])
        return tuple(found)[:limit]

    def _fitting(self, asked: str) -> list[CatalogEntry]:
        for rest in _stripped(_bare(asked)):
            fitting = self._by_spelling.get(_spelling(rest))
            if fitting:
                return fitting
        return []


def canonical(asked: str, catalog: Catalog) -> NamedEntry | None:
    """The one entry of a catalog that a name stands for; None for no entry, or for several."""
    return ToolNames(catalog).find(asked)


def client_name(tool: str) -> str:
    """The name MCP clients show a pack by.

    >>> client_name("github.create_issue")
    'helmdeck__github-create_issue'
    """
    if tool == PIPELINE_RUN:
        return tool
    return _CLIENT_PREFIX + _shown(tool)


def is_pipeline_run(asked: str) -> bool:
    """Whether a name means the tool that runs a stored pipeline, in any spelling of it."""
    return any(_spelling(rest) == "pipeline-run" for rest in _stripped(_bare(asked)))


def is_meta(asked: str) -> bool:
    """Whether a name means the planner or the router itself, in any spelling of it (rule S2)."""
    bare = _bare(asked)
    if _spelling(bare) in _META_ALONE:
        return True
    return any(_spelling(rest) in _META_SPELLINGS for rest in _stripped(bare))


def _bare(asked: str) -> str:
    """A name without what models write around it: quotes, space, an empty pair of brackets."""
    return asked[:_LONGEST_NAME].strip(_QUOTES).removesuffix("()")


def _stripped(bare: str) -> Iterator[str]:
    """The name as it stands, then without one prefix of a client after the other."""
    yield bare
    while prefix := _PREFIX.match(bare):
        bare = bare[prefix.end() :]
        yield bare


def _spelling(name: str) -> str:
    """What spellings of one name have in common: neither case nor the marks between words count,
    nor whether an accent is a character of its own.

    Other marks do: "C#" is not "C++".
    """
    return _BETWEEN_WORDS.sub("-", unicodedata.normalize("NFC", name.casefold()))


def _shown(tool: str) -> str:
    return _NOT_IN_CLIENT_NAMES.sub("-", tool)


# What the planner and the router are called under this server's name, and by its own MCP tools.
_META_SPELLINGS: Final = frozenset(
    _spelling(f"{server}.{tool.rpartition('.')[2]}")
    for server in ("helmdeck", "helmdash")
    for tool in META_TOOLS
)
_META_ALONE: Final = frozenset(tool.rpartition(".")[2] for tool in META_TOOLS)
