"""Where sentences end: the only places at which a text may be cut.

A sentence ends with a full stop, question or exclamation mark at the end or before white space, but
not at "e.g. "; the full stops of scripts that put no space after them count as they stand.
"""

from __future__ import annotations

import re
from typing import Final

# The full-width marks and the Devanagari danda end a sentence whatever follows.
_END: Final = re.compile(r"[.?!](?=\s|$)|[\u3002\uff01\uff1f\uff61\u0964]")
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|cf|vs|approx|resp|incl|z\.B|d\.h|Mr|Mrs|Ms|Dr|St|No)\.$",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION: Final = 8
_LIST_NUMBER: Final = re.compile(r"\s*\d+\.$")


def sentence_ends(text: str) -> tuple[int, ...]:
    """Offsets at which the sentences of a text end; the last is always its length.

    >>> sentence_ends("Is it? e.g. a v0.1 file. Then")
    (6, 24, 29)
    """
    ends: list[int] = []
    for match in _END.finditer(text):
        end = match.end()
        if not _is_false_end(text, ends[-1] if ends else 0, end):
            ends.append(end)
    if ends and not text[ends[-1] :].strip():
        ends.pop()
    return (*ends, len(text)) if text else ()


def first_sentence(text: str) -> str:
    """The text up to its first sentence end; all of it when there is none."""
    return text[: sentence_ends(text)[0]] if text else ""


def _is_false_end(text: str, start: int, end: int) -> bool:
    if text[end - 1] != ".":
        return False
    tail = text[max(start, end - _LONGEST_ABBREVIATION) : end]
    return bool(_ABBREVIATION.search(tail) or _LIST_NUMBER.fullmatch(text[start:end]))
