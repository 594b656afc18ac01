"""Patterns of a project's own that are masked: a part of regular expressions that stays fast.

`re` has no time limit, and one pattern such as `(a+)+b` can keep it busy for ever on a short text.
So only what is known to be fast is taken: characters, classes, groups, alternatives, `\\b`, and
repeats, none of which leaves more than a few ways to read the same text. Patterns are read here,
judged, and compiled by `re` as they are (ADR 22).

No lookaround, no back-references, no `^` and `$`: a pattern is found wherever it stands in a text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

MOST_PATTERNS = 20
MOST_CHARS = 200
# Ways to read the same text that a pattern may have at one place.
MOST_WAYS = 64
# A group that is repeated is short: some digits and a sign.
_MOST_DEPTH = 4
_UNBOUNDED = 1 << 16
_ESCAPED_CLASSES = frozenset("dDwWsS")
_ESCAPED_CHARS = {"t": "\t", "n": "\n", "r": "\r"}
_QUANTIFIER = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")
# What two parts may both match is judged by these, and by the characters that the pattern names.
_SAMPLE = frozenset(string.printable + "éßÄñ中日٣—…\u00a0€😀")


class BadPattern(Exception):
    """The pattern is not taken; the message says why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class _Chars:
    """One character out of some."""

    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Boundary:
    """`\\b` or `\\B`: no character."""


@dataclass(frozen=True, slots=True)
class _Repeat:
    body: _Node
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """Groups and whole patterns: one of some sequences."""

    branches: tuple[tuple[_Node, ...], ...]


_Node = _Chars | _Boundary | _Repeat | _Alternatives


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> re.Pattern[str]:
    """A pattern that is fast on every text. Raises BadPattern."""
    if not text.strip():
        raise BadPattern("is empty")
    if len(text) > MOST_CHARS:
        raise BadPattern(f"has more than {MOST_CHARS} characters")
    if not text.isprintable():
        raise BadPattern(r"may only have printable characters; write \t or \n for others")
    body = text.removeprefix("(?i)")
    flags = re.IGNORECASE if body != text else re.NOFLAG
    tree = _Reader(body, flags).whole()
    if _least(tree) == 0:
        raise BadPattern("would match nothing at all; name at least one character")
    ways = _ways(tree, frozenset())
    if ways > MOST_WAYS:
        raise BadPattern(
            "can read the same text in too many ways: bound its repeats, like {1,20}, or put a "
            "character between two that match the same"
        )
    try:
        return re.compile(body, flags)
    except re.error as error:
        raise BadPattern(f"cannot be read: {error}") from None


def pattern_problems(patterns: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each pattern that is not taken, with the pattern; none where all are."""
    problems = [f"{each!r} {said}" for each in patterns if (said := _problem(each))]
    if len(patterns) > MOST_PATTERNS:
        problems.append(f"At most {MOST_PATTERNS} patterns; these are {len(patterns)}.")
    return tuple(problems)


def _problem(text: str) -> str | None:
    try:
        compile_pattern(text)
    except BadPattern as problem:
        return str(problem)
    return None


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._text = text
        self._flags = flags
        self._at = 0
        self._sample = _SAMPLE | frozenset(text) | frozenset(text.swapcase())

    def whole(self) -> _Alternatives:
        found = self._alternatives(depth=0)
        if self._at < len(self._text):
            raise BadPattern(f"has a ) too many at character {self._at + 1}")
        return found

    def _alternatives(self, *, depth: int) -> _Alternatives:
        if depth > _MOST_DEPTH:
            raise BadPattern("nests its groups too deep")
        branches = [self._sequence(depth=depth)]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence(depth=depth))
        return _Alternatives(tuple(branches))

    def _sequence(self, *, depth: int) -> tuple[_Node, ...]:
        found: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            found.append(self._quantified(self._atom(depth=depth)))
        return tuple(found)

    def _atom(self, *, depth: int) -> _Node:
        sign = self._peek()
        if sign == "(":
            return self._group(depth=depth)
        if sign == "[":
            return self._members(self._class())
        if sign == "\\":
            return self._escaped()
        if sign in "^$":
            raise BadPattern(f"may not have {sign}: it is found wherever it stands; use \\b")
        if sign in "*+?{":
            raise BadPattern(f"repeats nothing at character {self._at + 1}; write \\{sign}")
        self._at += 1
        return self._members(sign)

    def _group(self, *, depth: int) -> _Node:
        rest = self._text[self._at :]
        if rest.startswith("(?") and not rest.startswith("(?:"):
            raise BadPattern("may not look around, name groups or set flags; (?i) may stand first")
        self._at += 3 if rest.startswith("(?:") else 1
        found = self._alternatives(depth=depth + 1)
        if self._peek() != ")":
            raise BadPattern("has a ( that is never closed")
        self._at += 1
        return found

    def _class(self) -> str:
        """The text of a class, brackets included."""
        start = self._at
        self._at += 1
        self._at += self._peek() == "^"
        self._at += self._peek() == "]"
        while self._peek() not in ("", "]"):
            # `re` keeps these for set operations to come, and warns.
            if self._text[self._at : self._at + 2] in ("--", "&&", "||", "~~"):
                raise BadPattern("may not have the same sign twice in a class; write it once")
            if self._peek() == "[":
                raise BadPattern("has a [ within a class; write \\[")
            self._at += 2 if self._peek() == "\\" else 1
        if self._peek() != "]":
            raise BadPattern("has a [ that is never closed")
        self._at += 1
        return self._text[start : self._at]

    def _escaped(self) -> _Node:
        sign = self._text[self._at + 1 : self._at + 2]
        if not sign:
            raise BadPattern("ends in a \\")
        self._at += 2
        if sign in "bB":
            return _Boundary()
        if sign.isalnum() and sign not in _ESCAPED_CLASSES and sign not in _ESCAPED_CHARS:
            raise BadPattern(f"may not have \\{sign}")
        return self._members(f"\\{sign}")

    def _quantified(self, body: _Node) -> _Node:
        sign = self._peek()
        found = _QUANTIFIER.match(self._text, self._at) if sign == "{" else None
        if sign not in ("*", "+", "?") and found is None:
            if sign == "{":
                raise BadPattern("has a { that counts nothing; write \\{")
            return body
        if isinstance(body, _Boundary):
            raise BadPattern("repeats \\b, which has no length")
        self._at += len(found[0]) if found else 1
        least, most = _bounds(sign, found)
        if self._peek() in ("*", "+", "?", "{"):
            raise BadPattern("repeats a repeat; leave one of them out")
        if least > most:
            raise BadPattern("counts from more to less")
        return _Repeat(body, least, most)

    def _members(self, text: str) -> _Chars:
        try:
            one = re.compile(text, self._flags)
        except re.error as error:
            raise BadPattern(f"cannot be read: {error}") from None
        return _Chars(frozenset(each for each in self._sample if one.fullmatch(each)))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]


def _bounds(sign: str, found: re.Match[str] | None) -> tuple[int, int]:
    if found is None:
        return {"*": (0, _UNBOUNDED), "+": (1, _UNBOUNDED), "?": (0, 1)}[sign]
    least = int(found[1])
    if not found[2]:
        return least, least
    return least, int(found[3]) if found[3] else _UNBOUNDED


def _least(node: _Node) -> int:
    """The fewest characters it matches."""
    match node:
        case _Chars():
            return 1
        case _Boundary():
            return 0
        case _Repeat(body, least, _):
            return least * _least(body)
        case _Alternatives(branches):
            return min(sum(map(_least, branch)) for branch in branches)


def _first(nodes: Sequence[_Node], follow: frozenset[str]) -> frozenset[str]:
    """The characters that a sequence may begin with, and those after it where it may be empty."""
    found: frozenset[str] = frozenset()
    for node in nodes:
        match node:
            case _Chars(members):
                return found | members
            case _Boundary():
                continue
            case _Repeat(body, _, _):
                found |= _first([body], frozenset())
            case _Alternatives(branches):
                found = found.union(*(_first(branch, frozenset()) for branch in branches))
        if _least(node):
            return found
    return found | follow


def _ways(node: _Node, follow: frozenset[str]) -> int:
    """In how many ways it may read the same text, at most, before what may follow."""
    match node:
        case _Chars() | _Boundary():
            return 1
        case _Repeat():
            return _ways_of_repeat(node, follow)
        case _Alternatives(branches):
            ways = [_ways_of_sequence(branch, follow) for branch in branches]
            firsts = [_first(branch, follow) for branch in branches]
            meet = any(one & other for n, one in enumerate(firsts) for other in firsts[:n])
            return sum(ways) if meet else max(ways)


def _ways_of_sequence(nodes: Sequence[_Node], follow: frozenset[str]) -> int:
    return prod(_ways(node, _first(nodes[n + 1 :], follow)) for n, node in enumerate(nodes))


def _ways_of_repeat(node: _Repeat, follow: frozenset[str]) -> int:
    if node.most == 0:
        return 1
    begins = _first([node.body], frozenset())
    own = _ways(node.body, follow | begins)
    # Each turn may go another way: of two ways, a few turns are too many.
    inner = 1
    for _ in range(min(node.most, 16)):
        inner *= own
    is_clear = node.least == node.most or not begins & follow
    return inner if is_clear else inner * (node.most - node.least + 1)
