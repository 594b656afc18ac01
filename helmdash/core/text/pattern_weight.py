"""What a regular expression costs, told by its text: room once it is compiled, and time on a text.

Rust's engine takes time in proportion to a text, and to the size of the expression as well, which a
few signs make large: `[ab]*a[ab]{5000}c` needs two seconds for 100 kB, `\\w{200}` takes 12 MB. Both
are bounds from above, measured with pydantic's engine: a unit is some 60 bytes and half a
microsecond of compiling, a place and a character of a text some 5 to 10 nanoseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Those of Unicode have hundreds of ranges.
_UNICODE_CLASS: Final = 1_000
_CLASS: Final = 60
_OTHER: Final = 20  # any sign, or one beyond ASCII: some ways to write it in UTF-8
_MOST: Final = 10**12
_CLASSES: Final = frozenset("wWdDsSpP")
_REPEATED: Final = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")
# The beginning of a group, or flags that stand alone.
_GROUP: Final = re.compile(r"\((?:\?(?:P?<[^>]*>|[A-Za-z-]*:|(?P<alone>[A-Za-z-]+\))))?")
_ESCAPED: Final = re.compile(r"\\(?:[pPxuU]\{[^}]*\}|[pP][A-Za-z]|[\s\S])")
# Signs in these are not what they look like: blanks and comments are left out.
_VERBOSE: Final = re.compile(r"\(\?[A-Za-z]*x")
_ANY_CASE: Final = re.compile(r"\(\?[A-Za-z]*i")


@dataclass(frozen=True, slots=True)
class Weight:
    """units: of room. places: where in the expression a match may be at once."""

    units: int = 0
    places: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.units + other.units, self.places + other.places)

    def times(self, number: int) -> Weight:
        """Repeated so often."""
        return Weight(min(self.units * number, _MOST), min(self.places * number, _MOST))


def weigh(pattern: str) -> Weight | None:
    """The weight of an expression; None for one whose text does not tell it (`(?x)`).

    One that no engine takes has some weight, too.

    >>> weigh("ab{3}"), weigh(r"(?:\\w,){10}")
    (Weight(units=4, places=4), Weight(units=10010, places=20))
    """
    cases = 2 if _ANY_CASE.search(pattern) else 1
    outer: list[Weight] = []
    whole, latest = Weight(), Weight()
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "{" and (found := _REPEATED.match(pattern, at)):
            most = max(int(number[:9] or 0) for number in (found[1], found[2] or "0"))
            whole, latest = _without(whole, latest), latest.times(max(most, 1))
            whole += latest
            at = found.end()
        elif sign == "(":
            if _VERBOSE.match(pattern, at):
                return None
            group = _GROUP.match(pattern, at)
            at = group.end() if group else at + 1
            if not (group and group["alone"]):
                outer.append(whole)
                whole, latest = Weight(), Weight()
        elif sign == ")":
            latest = whole
            whole = (outer.pop() if outer else Weight()) + latest
            at += 1
        elif sign in "*+?|^$":
            at += 1
        else:
            latest, at = _atom(pattern, at)
            latest = Weight(latest.units * cases, latest.places)
            whole += latest
    while outer:
        whole += outer.pop()
    return whole


def _without(whole: Weight, latest: Weight) -> Weight:
    return Weight(whole.units - latest.units, whole.places - latest.places)


def _atom(pattern: str, at: int) -> tuple[Weight, int]:
    """One sign or class, and where it ends."""
    sign = pattern[at]
    if sign == "\\" and (found := _ESCAPED.match(pattern, at)):
        is_class = found[0][1] in _CLASSES
        return Weight(_UNICODE_CLASS if is_class else _OTHER, 1), found.end()
    if sign == "[":
        return _class(pattern, at)
    return Weight(1 if sign.isascii() and sign != "." else _OTHER, 1), at + 1


def _class(pattern: str, at: int) -> tuple[Weight, int]:
    start, units, depth = at, _CLASS, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\" and (found := _ESCAPED.match(pattern, at)):
            units += _UNICODE_CLASS if found[0][1] in _CLASSES else _OTHER
            at = found.end()
            continue
        at += 1
        units += 1 if sign.isascii() else _OTHER
        if sign == "[":
            depth += 1
            at += pattern.startswith("^", at)
            # A bracket that comes first is a sign like others.
            at += pattern.startswith("]", at)
        elif sign == "]":
            depth -= 1
            if depth == 0:
                break
    return Weight(units, 1), max(at, start + 1)
