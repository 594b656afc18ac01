"""Sums of rows of rollups that this process has added up before.

A year of all models is some six hundred rows of a thousand words each, and thirty days are some
four thousand of a hundred: an hour changes a few of them, and to read and add up the others anew
took a third of the models page.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from helmdash.core.rollups.figures import Counts, Sum, add
from helmdash.core.rollups.periods import Width

# Three widths of sixty models, purposes and variants, say, of a few projects. Each is some hundred
# kilobytes at most, and some ten usually.
_MOST_KEPT: Final = 512
# A model's name as it was spelt: which was the last one, only the rows apart tell.
_SPELT: Final = "s:"


class Row(NamedTuple):
    """A row as it is stored: its figures are JSON, plain counts and distributions."""

    width: int
    period: int
    figures: str
    distributions: tuple[str | None, ...]


Piece = tuple[Width, int, Counts]
_kept: OrderedDict[Hashable, tuple[bytes, list[Piece]]] = OrderedDict()
_lock: Final = threading.Lock()


def summed(place: Hashable, rows: Iterable[Row], load: Callable[[Row], Counts]) -> list[Piece]:
    """The figures of some rows as one piece, of the newest period, and how a model was spelt as a
    piece for each row. Not to be changed.

    place: what the rows are of, under which the sum is kept. It is taken as long as the texts of
    all rows are the same.
    """
    ordered = sorted(rows, key=lambda row: row.period)
    digest = _digest(ordered)
    with _lock:
        kept = _kept.get(place)
        if kept is not None and kept[0] == digest:
            _kept.move_to_end(place)
            return kept[1]
    pieces = _add_up(ordered, load)
    with _lock:
        _kept[place] = digest, pieces
        if len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return pieces


def _digest(rows: Sequence[Row]) -> bytes:
    digest = blake2b(digest_size=16)
    for row in rows:
        texts = [row.figures, *(text or "" for text in row.distributions)]
        # With the length of each, so that no two lists of texts come to the same bytes.
        digest.update(f"{row.width} {row.period} {[*map(len, texts)]}".encode())
        digest.update("".join(texts).encode())
    return digest.digest()


def _add_up(rows: Sequence[Row], load: Callable[[Row], Counts]) -> list[Piece]:
    total: Counts = {}
    pieces: list[Piece] = []
    for row in rows:
        counts = load(row)
        spelt = {word: counts.pop(word) for word in [*counts] if word.startswith(_SPELT)}
        add(total, counts)
        if spelt:
            pieces.append((Width(row.width), row.period, spelt))
    newest = rows[-1]
    return [(Width(newest.width), newest.period, Sum(total)), *pieces]
