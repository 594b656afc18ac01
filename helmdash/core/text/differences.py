"""What one text lost and another gained, word by word.

Bounded: beyond MOST_PIECES words it goes by lines, beyond as many lines as a whole; what it says is
then coarser, and still true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

# Two texts of so many pieces take some milliseconds; the most unlucky ones a second.
MOST_PIECES: Final = 1_500
# A word with the blanks after it: fewer and rarer pieces than words and blanks apart.
_WORDS: Final = re.compile(r"\S+\s*|\s+")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Change(StrEnum):
    """What became of a part."""

    SAME = "same"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text, and what became of it."""

    change: Change
    text: str


def differences(before: str, after: str) -> tuple[Part, ...]:
    """The parts of both texts in their order. Those that are same or gone make up `before`, those
    that are same or new `after`.

    >>> [f"{part.change}: {part.text}" for part in differences("a red car", "a car")]
    ['same: a ', 'gone: red ', 'same: car']
    """
    for pieces in (_WORDS, _LINES):
        old, new = pieces.findall(before), pieces.findall(after)
        if len(old) <= MOST_PIECES and len(new) <= MOST_PIECES:
            return tuple(_parts(old, new))
    return tuple(_parts([before], [after]))


def _parts(old: Sequence[str], new: Sequence[str]) -> Iterator[Part]:
    for what, *(i, j, k, m) in SequenceMatcher(a=old, b=new).get_opcodes():
        if what == "equal":
            yield Part(Change.SAME, "".join(old[i:j]))
            continue
        if i < j:
            yield Part(Change.GONE, "".join(old[i:j]))
        if k < m:
            yield Part(Change.NEW, "".join(new[k:m]))
